// A frame in other people's pages keeps itself new for as long as it is looked at.
renewal.tick();
renewal.begin();
