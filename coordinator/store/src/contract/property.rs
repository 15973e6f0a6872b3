//! Property test: whatever is written, in any groups, both engines return equal results.

use parallax_core::id::{AgentId, DeployId, DestinationId, IncidentId, InvitationId, KeyId, SubscriberId};
use parallax_core::machine::MachineState;
use parallax_core::one_time_link::LinkOwner;
use parallax_core::page::branding::PictureUse;
use parallax_core::role::Role;
use parallax_core::vantage::{NetworkNo, Region, VantageNo};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::samples::*;
use crate::{Batch, Checkpoint, Expect, Op, Presence, StoreRead};

fn any_presence() -> impl Strategy<Value = Presence> {
    prop_oneof![Just(Presence::Absent), Just(Presence::Present), (0..30u64).prop_map(Presence::At)]
}

fn expect() -> impl Strategy<Value = Expect> {
    let n = 0..4u128;
    prop_oneof![
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::Account(account_id(n), presence)),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::Page(page_id(n), presence)),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::Monitor(monitor_id(n), presence)),
        (0..3u8, any_presence()).prop_map(|(n, presence)| Expect::StoredResponse(format!("r{n}"), presence)),
        (0..3u8, n.clone()).prop_map(|(slug, n)| Expect::SlugFree(format!("s{slug}"), page_id(n))),
        (n.clone(), 0..4u32).prop_map(|(n, limit)| Expect::MonitorsBelow(account_id(n), limit)),
        (0..3u8, n.clone()).prop_map(|(host, n)| Expect::HostnameFree(format!("h{host}"), page_id(n))),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::Person(person_id(n), presence)),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::CompanySignIn(account_id(n), presence)),
        (0..3u8, n.clone())
            .prop_map(|(domain, n)| Expect::CompanyDomainFree(format!("d{domain}.example"), account_id(n))),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::LoginSession(login_session_id(n), presence)),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::OneTimeLink(link_id(n), presence)),
        (n.clone(), any_presence()).prop_map(|(n, presence)| Expect::AccountMember(
            account_id(n),
            person_id(1),
            presence
        )),
        (0..3u8, n.clone()).prop_map(|(email, n)| Expect::EmailFree(format!("p{email}@example.com"), person_id(n))),
        n.prop_map(|n| Expect::NoMonitors(page_id(n))),
        (0..4u64).prop_map(|seq| Expect::Cursor("c".to_owned(), seq)),
        (0..3u32).prop_map(Expect::NextSlot),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let n = || 0..4u128;
    let region = || prop_oneof![Just(Region::Europe), Just(Region::Oceania)];
    let bytes = || prop_oneof![9 => vec(any::<u8>(), 0..20), 1 => Just(vec![5; 60_000])];
    let records = prop_oneof![
        n().prop_map(|n| account(n).into()),
        n().prop_map(|n| Op::DeleteAccount(account_id(n))),
        n().prop_map(|n| Op::from(audit_entry(n, 7))),
        (n(), n(), 0..5u8).prop_map(|(n, account, slug)| page(n, account, &format!("s{slug}")).into()),
        (n(), n(), 0..3u8)
            .prop_map(|(n, slug, host)| page_with_host(n, &format!("s{slug}"), &format!("h{host}")).into()),
        n().prop_map(|n| Op::DeletePage(page_id(n))),
        (n(), 0..2usize, 0..9u8).prop_map(|(n, usage, byte)| {
            Op::PutPicture(page_id(n), PictureUse::ALL[usage], vec![byte; usize::from(byte) * 9000])
        }),
        (n(), 0..2usize).prop_map(|(n, usage)| Op::DeletePicture(page_id(n), PictureUse::ALL[usage])),
        (0..4u8, n(), 0..9i64)
            .prop_map(|(host, n, until)| Op::PutReservedHostname(format!("h{host}"), reserved_hostname(n, until))),
        (0..9i64).prop_map(|now| Op::DeleteExpiredReservations(at(now))),
        (n(), n(), 0..3u32).prop_map(|(n, page, position)| monitor(n, page, position).into()),
        (n(), n()).prop_map(|(n, page)| component(n, page).into()),
        n().prop_map(|n| Op::DeleteMonitor(monitor_id(n))),
        (n(), n()).prop_map(|(n, account)| key(n, account).into()),
        n().prop_map(|n| Op::DeleteKey(KeyId::from_u128(n))),
        (0..3u16).prop_map(|n| agent(n).into()),
        (0..3u128).prop_map(|n| Op::DeleteAgent(AgentId::from_u128(n))),
        (n(), 0..3u8).prop_map(|(n, email)| person(n, email).into()),
        (n(), n()).prop_map(|(account, n)| account_member(account, n, Role::Editor).into()),
        (n(), n()).prop_map(|(account, n)| Op::DeleteAccountMember(account_id(account), person_id(n))),
        (n(), 0..3u8).prop_map(|(account, domain)| company_sign_in(account, domain).into()),
        n().prop_map(|n| Op::DeleteCompanySignIn(account_id(n))),
        (n(), n()).prop_map(|(n, person)| login_session(n, person).into()),
        n().prop_map(|n| Op::DeleteLoginSession(login_session_id(n))),
        (n(), n()).prop_map(|(n, owner)| one_time_link(n, owner).into()),
        n().prop_map(|n| Op::DeleteOneTimeLink(link_id(n))),
        n().prop_map(|n| invitation(n, None).into()),
        n().prop_map(|n| Op::DeleteInvitation(InvitationId::from_u128(n))),
        n().prop_map(|n| Op::PutMachine(monitor_id(n), Box::<MachineState>::default())),
        (n(), n(), 0..9i64, any::<bool>()).prop_map(|(n, page, at, open)| incident(n, page, at, open).into()),
        (n(), n(), 0..9i64, any::<bool>()).prop_map(|(n, page, at, open)| window(n, page, at, open).into()),
        n().prop_map(|n| Op::DeleteIncident(IncidentId::from_u128(n))),
        (n(), n(), proptest::option::of(0..9i64)).prop_map(|(n, page, at)| series(n, page, at).into()),
        (n(), n(), 0..9i64).prop_map(|(n, page, at)| deploy(n, page, at).into()),
        n().prop_map(|n| Op::DeleteDeploy(DeployId::from_u128(n))),
        (n(), n()).prop_map(|(n, page)| destination(n, page).into()),
        n().prop_map(|n| Op::DeleteDestination(DestinationId::from_u128(n))),
        (n(), n(), 0..3u8).prop_map(|(n, page, contact)| subscriber(n, page, contact).into()),
        n().prop_map(|n| Op::DeleteSubscriber(SubscriberId::from_u128(n))),
        (0..4i64, n(), any::<bool>()).prop_map(|(at, page, done)| bulletin(at, page, done).into()),
        (0..4i64, proptest::option::of(n()), proptest::option::of(0..9i64))
            .prop_map(|(at, page, due)| delivery(at, page, due).into()),
        (0..5i64).prop_map(|before| Op::DeleteOldDeliveries(at(before))),
        n().prop_map(|n| Op::ClearNotifications(page_id(n))),
        (n(), n()).prop_map(|(page, n)| Op::PutAnnouncedOutages(page_id(page), Box::new(outages(n)))),
        (0..30u64, n()).prop_map(|(number, n)| Op::PutPing(monitor_id(n), Box::new(ping(number, b"it")))),
    ];
    let history = prop_oneof![
        (n(), region(), -26..50i64, bytes()).prop_map(|(n, at, hour, it)| Op::PutBlock(block(n, at, hour, it))),
        (n(), -2..4i64).prop_map(|(n, day)| Op::DeleteBlocks(monitor_id(n), day)),
        (n(), -26..50i64, bytes()).prop_map(|(n, hour, it)| Op::PutHour(rollup(n, hour, it))),
        (n(), -2..4i64).prop_map(|(n, day)| Op::DeleteHours(monitor_id(n), day)),
        (n(), -2..3i64, bytes()).prop_map(|(n, day, it)| Op::PutDay(rollup(n, day, it))),
        (n(), -30..120i64).prop_map(|(n, hour)| Op::CompactHistory(monitor_id(n), hour)),
        (0..3u32, 0..9u64, bytes()).prop_map(|(part, through, bytes)| Op::PutCheckpoint(Checkpoint {
            part,
            through,
            bytes
        })),
        (0..3u32).prop_map(Op::DeleteCheckpoint),
        (0..12u64).prop_map(Op::TrimReadings),
        (0..4u64).prop_map(|seq| Op::SetCursor("c".to_owned(), seq)),
        (0..3u32).prop_map(Op::SetNextSlot),
        (0..3u16).prop_map(|n| Op::SetNextVantage(VantageNo(n))),
        (0..3u16).prop_map(|n| Op::PutNetwork(format!("n{n}"), NetworkNo(n))),
        (0..3u8, 0..20i64).prop_map(|(n, expires)| Op::PutStoredResponse(format!("r{n}"), stored_response(n, expires))),
        (0..20i64).prop_map(|now| Op::DeleteExpiredResponses(at(now))),
    ];
    prop_oneof![records, history]
}

fn batch() -> impl Strategy<Value = Batch> {
    let events = vec((0..99i64, proptest::option::of(0..4u128)), 0..3);
    (vec(expect(), 0..2), vec(op(), 0..5), events, 0..3u32).prop_map(|(expect, ops, events, count)| Batch {
        expect,
        ops,
        events: events.into_iter().map(|(at, monitor)| event(at, monitor)).collect(),
        readings: readings(count, u64::from(count)),
    })
}

/// Returns the results of all queries as text.
pub(crate) fn everything(reader: &dyn StoreRead) -> Vec<String> {
    let mut results = vec![
        format!("{:?} {:?}", reader.accounts(), reader.pages()),
        format!("{:?} {:?}", reader.monitors(), reader.agents()),
        format!("{:?}", reader.invitations()),
        format!("{:?} {:?}", reader.events_after(0, usize::MAX), reader.last_event()),
        format!("{:?} {:?}", reader.readings_after(0, usize::MAX), reader.last_reading()),
        format!("{:?} {:?}", reader.checkpoints(0, usize::MAX), reader.cursor("c")),
        format!("{:?} {:?} {:?}", reader.next_slot(), reader.next_vantage(), reader.networks()),
    ];
    results.push(format!("{:?} {:?}", reader.open_incidents(), reader.running_series()));
    results.push(format!("{:?} {:?}", reader.open_bulletins(), reader.waiting_deliveries()));
    results.push(format!("{:?}", reader.deliveries_of(None, None, 9)));
    for n in 0..4 {
        results.push(format!("{:?} {:?}", reader.account(account_id(n)), reader.page(page_id(n))));
        results.push(format!("{:?} {:?}", reader.pages_of(account_id(n)), reader.keys_of(account_id(n))));
        results.push(format!("{:?} {:?}", reader.monitors_of(page_id(n)), reader.monitor(monitor_id(n))));
        results.push(format!(
            "{:?} {:?}",
            reader.page_by_slug(&format!("s{n}")),
            reader.stored_response(&format!("r{n}"))
        ));
        results.extend(people(reader, n));
        results.push(format!("{:?}", reader.page_by_host(&format!("h{n}"))));
        results.push(format!(
            "{:?} {:?}",
            PictureUse::ALL.map(|it| reader.picture(page_id(n), it)),
            reader.reserved_hostname(&format!("h{n}"))
        ));
        results.push(format!("{:?}", reader.events_of(monitor_id(n), Some(20), 5)));
        let others = [monitor_id(n), monitor_id(n + 1), monitor_id(n + 2)];
        results.push(format!("{:?}", reader.events_of_many(&others, Some(20), 5)));
        results.push(format!("{:?} {:?}", reader.pings(monitor_id(n)), reader.machine(monitor_id(n))));
        results.push(format!("{:?}", reader.incidents_of(page_id(n), false, None, 9)));
        results.push(format!("{:?}", reader.incidents_of(page_id(n), true, None, 9)));
        results.push(format!("{:?}", reader.windows_of(page_id(n), None, at(2)..at(7), 3)));
        results.push(format!("{:?}", reader.windows_of(page_id(n), Some(monitor_id(2)), at(2)..at(7), 3)));
        results.push(format!("{:?}", reader.oldest_incident(page_id(n))));
        results.push(format!("{:?} {:?}", reader.deploys_of(page_id(n), 2), reader.page_counts(page_id(n))));
        results.push(format!("{:?} {:?}", reader.destinations_of(page_id(n)), reader.announced_outages(page_id(n))));
        results.push(format!("{:?}", reader.subscribers_of(page_id(n), None, 3)));
        results.push(format!("{:?}", reader.subscriber_by_contact(page_id(n), [1; 16])));
        results.push(format!("{:?}", reader.deliveries_of(Some(page_id(n)), None, 9)));
        let hours = -30..50;
        results.push(format!("{:?}", reader.blocks(monitor_id(n), Region::Europe, hours.clone())));
        results.push(format!("{:?}", reader.blocks(monitor_id(n), Region::Oceania, -1..2)));
        let days = reader.days(monitor_id(n), 0..2);
        results.push(format!("{:?} {days:?}", reader.hours(monitor_id(n), hours)));
    }
    results
}

/// Returns the results of the queries for persons with that number as text.
fn people(reader: &dyn StoreRead, n: u128) -> Vec<String> {
    let email = format!("p{n}@example.com");
    vec![
        format!("{:?} {:?}", reader.person(person_id(n)), reader.person_by_email(&email)),
        format!("{:?} {:?}", reader.members_of(account_id(n)), reader.memberships_of(person_id(n))),
        format!(
            "{:?} {:?}",
            reader.account_member(account_id(n), person_id(1)),
            reader.login_session(login_session_id(n))
        ),
        format!("{:?} {:?}", reader.login_sessions_of(person_id(n)), reader.one_time_link(link_id(n))),
        format!("{:?}", reader.one_time_links_of(LinkOwner::Account(account_id(n)))),
        format!("{:?}", reader.one_time_links_of(LinkOwner::Person(person_id(n)))),
        format!("{:?}", reader.audit_entries(account_id(n), Some(4), 2)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_return_equal_results(groups in vec(vec(batch(), 1..4), 1..12), tidy in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let (mut memory, mut disk) = (TestStore::in_memory(), TestStore::on_disk(folder.path()));
        for group in &groups {
            prop_assert_eq!(memory.writer.commit(group), disk.writer.commit(group));
            if tidy {
                disk.tidy();
            }
            prop_assert_eq!(everything(&*memory.reader), everything(&*disk.reader));
        }
        let results = everything(&*disk.reader);
        drop(disk);
        prop_assert_eq!(results, everything(&*TestStore::on_disk(folder.path()).reader));
    }
}
