//! Operator alerts: turns each problem into one delivery per destination of the operator.

use std::collections::BTreeMap;

use parallax_core::delivery::{Delivery, Letter, Recipient, Stage};
use parallax_core::event::What;
use parallax_core::id::AgentId;
use parallax_core::member::Agent;
use parallax_core::notice;
use parallax_core::place::PlaceNo;
use parallax_core::quarantine::Contradictions;
use parallax_core::time::Timestamp;

use super::{Reaction, delivery_id};
use crate::letters::PlaceName;
use crate::letters::notice::{Matter, OperatorNews};
use crate::storage::{Batch, Read, Recorded, Result};

/// Journal consumer that creates operator alerts.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    /// Public host of the installation.
    pub installation: String,
    /// True if the operator has a mailbox.
    pub by_mail: bool,
    /// True if the operator has a webhook.
    pub by_webhook: bool,
}

impl Reaction for Notices {
    const NAME: &'static str = "notices";

    fn react(&self, read: &dyn Read, events: &[Recorded], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        for recorded in events {
            let (by_mail, by_webhook) = (self.by_mail, self.by_webhook);
            if !by_mail && !by_webhook {
                break;
            }
            let Some(news) = news(recorded, read)? else { continue };
            let (json, mail) = crate::letters::notice::notice(&news, &self.installation);
            let name = news.matter.name();
            if by_webhook {
                batch.write(delivery(recorded, Recipient::OperatorHook, name, Letter::Json(json), now));
            }
            if by_mail {
                batch.write(delivery(recorded, Recipient::OperatorMail, name, Letter::Mail(mail), now));
            }
        }
        Ok(batch)
    }
}

/// Returns the operator alert of an event, if it has one.
fn news(recorded: &Recorded, read: &dyn Read) -> Result<Option<OperatorNews>> {
    let (matter, ended) = match &recorded.event.what {
        What::Quarantine(place, begins, found) => (quarantine(*place, found, read)?, !begins),
        What::Notice(notice) => (Some(matter(&notice.matter, read)?), notice.ended),
        _ => return Ok(None),
    };
    Ok(matter.map(|matter| OperatorNews { matter, ended, at: recorded.event.at }))
}

/// `None` if the agent is gone: the operator removed it.
fn quarantine(place: PlaceNo, found: &Contradictions, read: &dyn Read) -> Result<Option<Matter>> {
    let agents: BTreeMap<PlaceNo, Agent> =
        read.agents()?.into_iter().map(|agent| (agent.value.place, agent.value)).collect();
    let name = |place: PlaceNo| match agents.get(&place) {
        Some(agent) => format!("{} ({})", agent.name, agent.network),
        None => format!("place {}", place.0),
    };
    let found = (!found.by.is_empty()).then(|| found.words(name));
    Ok(agents.get(&place).map(|agent| Matter::Quarantine {
        found,
        place: PlaceName { name: agent.name.clone(), network: agent.network.clone() },
        region: agent.region,
    }))
}

fn matter(matter: &notice::Matter, read: &dyn Read) -> Result<Matter> {
    Ok(match matter {
        notice::Matter::NobodyConnected(region) => Matter::NobodyConnected(*region),
        notice::Matter::OneNetwork(region) => Matter::OneNetwork(*region),
        notice::Matter::StoreLow(free) => Matter::StoreLow(*free),
        notice::Matter::CertificateEnding { agent, ends_at } => {
            Matter::CertificateEnding { agent: Some(name_of(*agent, read)?), ends_at: *ends_at }
        }
        notice::Matter::AuthorityEnding(ends_at) => {
            Matter::CertificateEnding { agent: None, ends_at: *ends_at }
        }
        notice::Matter::PartsBroken(parts) => Matter::PartsBroken(*parts),
        notice::Matter::HostsEnding { first, count, ends_at } => {
            Matter::HostsEnding { first: first.clone(), count: *count, ends_at: *ends_at }
        }
        notice::Matter::OwnEnding(ends_at) => Matter::OwnEnding(*ends_at),
        notice::Matter::Quarantined(region) => Matter::Quarantined(*region),
        notice::Matter::NamesFail => Matter::NamesFail,
        notice::Matter::TwoNetworks => Matter::TwoNetworks,
        notice::Matter::Contradicted { agent, by } => {
            Matter::Contradicted { agent: name_of(*agent, read)?, by: by.clone() }
        }
        notice::Matter::DeliveriesBlocked => Matter::DeliveriesBlocked,
        notice::Matter::HostUnfit { agent, faults } => {
            Matter::HostUnfit { agent: name_of(*agent, read)?, faults: faults.clone() }
        }
    })
}

fn name_of(agent: AgentId, read: &dyn Read) -> Result<String> {
    Ok(read.agent(agent)?.map_or_else(|| agent.to_string(), |agent| agent.value.name))
}

fn delivery(recorded: &Recorded, to: Recipient, event: &str, letter: Letter, now: Timestamp) -> Delivery {
    Delivery {
        id: delivery_id(recorded, to),
        page: None,
        to,
        event: event.to_owned(),
        monitor: None,
        incident: None,
        seq: recorded.seq,
        letter,
        once: false,
        created_at: now,
        stage: Stage::Waiting(now),
        tries: Default::default(),
        log: Vec::new(),
        began: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parallax_core::delivery::Mail;
    use parallax_core::event::Event;
    use parallax_core::notice::Notice;
    use parallax_core::place::Region;

    use super::*;
    use crate::clock::Clock;
    use crate::react::{Turn, turn};
    use crate::storage::Store;
    use crate::storage::contract::samples::{agent, at};

    async fn written(reaction: Notices, events: &[What]) -> Vec<Delivery> {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        batch.write(agent(1));
        for what in events {
            batch.event(Event { at: at(5), page: None, monitor: None, what: what.clone() });
        }
        store.commit(batch).await.unwrap();
        let (reaction, clock) = (Arc::new(reaction), Clock::by_hand(at(9)));
        // Reading an event twice would give the same ids.
        while turn(&reaction, &store, &clock).await.unwrap() != Turn::Rests {}
        let found = store.reader().deliveries_of(None, None, 99).unwrap();
        found.into_iter().map(|delivery| delivery.value).collect()
    }

    fn text(mail: &Letter) -> String {
        match mail {
            Letter::Mail(Mail { subject, text, .. }) => format!("{subject}\n{text}"),
            Letter::Json(_) | Letter::Bulletin(_) => String::new(),
        }
    }

    #[tokio::test]
    async fn each_notice_goes_once_to_every_destination_of_the_operator() {
        let agent = agent(1);
        let ending = notice::Matter::CertificateEnding { agent: agent.id, ends_at: at(7) };
        let found =
            Contradictions { words: 9, contradicted: 7, by: vec![(agent.place, 7), (PlaceNo(42), 6)] };
        let events = [
            What::Quarantine(agent.place, true, found.clone()),
            What::Quarantine(PlaceNo(999), true, found),
            What::AgentJoined(agent.id),
            What::Notice(Notice {
                matter: notice::Matter::NobodyConnected(Some(Region::Asia)),
                ended: false,
            }),
            What::Notice(Notice { matter: ending, ended: false }),
            What::Notice(Notice { matter: notice::Matter::AuthorityEnding(at(8)), ended: false }),
            What::Notice(Notice {
                matter: notice::Matter::HostUnfit {
                    agent: agent.id,
                    faults: "this host's resolver does not answer".to_owned(),
                },
                ended: false,
            }),
            What::Notice(Notice {
                matter: notice::Matter::HostsEnding {
                    first: "shop.example".to_owned(),
                    count: 3,
                    ends_at: at(8),
                },
                ended: false,
            }),
        ];
        let both = written(
            Notices { by_mail: true, by_webhook: true, installation: "status.example".to_owned() },
            &events,
        )
        .await;
        assert_eq!(both.len(), 12, "{both:?}");
        let mails: Vec<String> = both.iter().map(|delivery| text(&delivery.letter)).collect();
        for words in [
            "no agent in Asia",
            agent.name.as_str(),
            "authority's certificate expires soon",
            "shop.example",
            "7 of 9 results contradicted",
            "6 by place 42",
            "resolver does not answer",
        ] {
            let named = mails.iter().any(|mail| mail.to_lowercase().contains(&words.to_lowercase()));
            assert!(named, "{words}: {mails:?}");
        }
        let mail = written(Notices { by_mail: true, ..Notices::default() }, &events).await;
        assert!(mail.len() == 6 && mail.iter().all(|one| one.to == Recipient::OperatorMail));
        assert!(written(Notices::default(), &events).await.is_empty());
    }
}
