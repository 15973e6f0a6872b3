//! Operator alerts: turns each problem into one delivery per destination of the operator.

use std::collections::BTreeMap;

use parallax_core::delivery::{Delivery, DeliveryMessage, Recipient};
use parallax_core::event::EventKind;
use parallax_core::id::AgentId;
use parallax_core::member::AgentRecord;
use parallax_core::operator_alert;
use parallax_core::quarantine::Contradictions;
use parallax_core::time::Timestamp;
use parallax_core::vantage::VantageNo;
use parallax_store::{Batch, JournalEvent, Result, StoreRead};

use super::{JournalConsumer, event_delivery_id};
use crate::render::AgentLabel;
use crate::render::operator_alert::{OperatorNotification, ProblemDetails, render_operator_alert};

/// Journal consumer that creates operator alerts.
#[derive(Debug, Clone, Default)]
pub struct OperatorAlertConsumer {
    /// Public host of the installation.
    pub installation: String,
    /// True if the operator has a mailbox.
    pub by_mail: bool,
    /// True if the operator has a webhook.
    pub by_webhook: bool,
}

impl JournalConsumer for OperatorAlertConsumer {
    const NAME: &'static str = "notices";

    fn handle_events(&self, read: &dyn StoreRead, events: &[JournalEvent], now: Timestamp) -> Result<Batch> {
        let mut batch = Batch::new();
        for recorded in events {
            let (by_mail, by_webhook) = (self.by_mail, self.by_webhook);
            if !by_mail && !by_webhook {
                break;
            }
            let Some(news) = operator_notification(recorded, read)? else { continue };
            let (json, mail) = render_operator_alert(&news, &self.installation);
            let name = news.problem.event_name();
            if by_webhook {
                batch.write(operator_delivery(
                    recorded,
                    Recipient::OperatorWebhook,
                    name,
                    DeliveryMessage::Json(json),
                    now,
                ));
            }
            if by_mail {
                batch.write(operator_delivery(
                    recorded,
                    Recipient::OperatorMail,
                    name,
                    DeliveryMessage::Mail(mail),
                    now,
                ));
            }
        }
        Ok(batch)
    }
}

/// Returns the operator alert of an event, if it has one.
fn operator_notification(recorded: &JournalEvent, read: &dyn StoreRead) -> Result<Option<OperatorNotification>> {
    let (matter, ended) = match &recorded.event.kind {
        EventKind::QuarantineChanged(place, begins, found) => (quarantine_details(*place, found, read)?, !begins),
        EventKind::OperatorAlert(notice) => (Some(problem_details(&notice.problem, read)?), notice.has_ended),
        _ => return Ok(None),
    };
    Ok(matter.map(|matter| OperatorNotification { problem: matter, has_ended: ended, at: recorded.event.at }))
}

/// `None` if the agent is gone: the operator removed it.
fn quarantine_details(
    place: VantageNo,
    found: &Contradictions,
    read: &dyn StoreRead,
) -> Result<Option<ProblemDetails>> {
    let agents: BTreeMap<VantageNo, AgentRecord> =
        read.agents()?.into_iter().map(|agent| (agent.value.vantage_no, agent.value)).collect();
    let name = |place: VantageNo| match agents.get(&place) {
        Some(agent) => format!("{} ({})", agent.name, agent.network),
        None => format!("place {}", place.0),
    };
    let found = (!found.by.is_empty()).then(|| found.describe(name));
    Ok(agents.get(&place).map(|agent| ProblemDetails::AgentQuarantined {
        found,
        place: AgentLabel { name: agent.name.clone(), network: agent.network.clone() },
        region: agent.region,
    }))
}

fn problem_details(matter: &operator_alert::OperatorProblem, read: &dyn StoreRead) -> Result<ProblemDetails> {
    Ok(match matter {
        operator_alert::OperatorProblem::NoAgentConnected(region) => ProblemDetails::NoAgentConnected(*region),
        operator_alert::OperatorProblem::SingleNetwork(region) => ProblemDetails::SingleNetwork(*region),
        operator_alert::OperatorProblem::DiskNearlyFull(free) => ProblemDetails::DiskNearlyFull(*free),
        operator_alert::OperatorProblem::AgentCertificateExpiring { agent, ends_at } => {
            ProblemDetails::CertificateExpiring { agent: Some(agent_name(*agent, read)?), ends_at: *ends_at }
        }
        operator_alert::OperatorProblem::AuthorityExpiring(ends_at) => {
            ProblemDetails::CertificateExpiring { agent: None, ends_at: *ends_at }
        }
        operator_alert::OperatorProblem::TasksCrashed(parts) => ProblemDetails::TasksCrashed(*parts),
        operator_alert::OperatorProblem::AcmeCertificatesExpiring { first, count, ends_at } => {
            ProblemDetails::AcmeCertificatesExpiring { first: first.clone(), count: *count, ends_at: *ends_at }
        }
        operator_alert::OperatorProblem::CertificateFileExpiring(ends_at) => {
            ProblemDetails::CertificateFileExpiring(*ends_at)
        }
        operator_alert::OperatorProblem::AllQuarantined(region) => ProblemDetails::AllQuarantined(*region),
        operator_alert::OperatorProblem::NameResolutionFails => ProblemDetails::NameResolutionFails,
        operator_alert::OperatorProblem::OnlyTwoNetworks => ProblemDetails::OnlyTwoNetworks,
        operator_alert::OperatorProblem::Contradicted { agent, by } => {
            ProblemDetails::Contradicted { agent: agent_name(*agent, read)?, by: by.clone() }
        }
        operator_alert::OperatorProblem::DeliveriesBlocked => ProblemDetails::DeliveriesBlocked,
        operator_alert::OperatorProblem::UnfitHost { agent, faults } => {
            ProblemDetails::UnfitHost { agent: agent_name(*agent, read)?, faults: faults.clone() }
        }
    })
}

fn agent_name(agent: AgentId, read: &dyn StoreRead) -> Result<String> {
    Ok(read.agent(agent)?.map_or_else(|| agent.to_string(), |agent| agent.value.name))
}

fn operator_delivery(
    recorded: &JournalEvent,
    to: Recipient,
    event: &str,
    letter: DeliveryMessage,
    now: Timestamp,
) -> Delivery {
    Delivery { seq: recorded.seq, ..Delivery::waiting(event_delivery_id(recorded, to), to, event, letter, now) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parallax_core::delivery::MailMessage;
    use parallax_core::event::Event;
    use parallax_core::operator_alert::OperatorAlert;
    use parallax_core::vantage::Region;
    use parallax_runtime::clock::Clock;
    use parallax_store::Store;
    use parallax_store::samples::{agent, at};

    use super::*;
    use crate::consumers::{ConsumerTurn, consume_next};

    async fn written(reaction: OperatorAlertConsumer, events: &[EventKind]) -> Vec<Delivery> {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        batch.write(agent(1));
        for what in events {
            batch.event(Event { at: at(5), page: None, monitor: None, kind: what.clone() });
        }
        store.commit(batch).await.unwrap();
        let (reaction, clock) = (Arc::new(reaction), Clock::manual(at(9)));
        // Reading an event twice would give the same ids.
        while consume_next(&reaction, &store, &clock).await.unwrap() != ConsumerTurn::Idle {}
        let found = store.reader().deliveries_of(None, None, 99).unwrap();
        found.into_iter().map(|delivery| delivery.value).collect()
    }

    fn text(mail: &DeliveryMessage) -> String {
        match mail {
            DeliveryMessage::Mail(MailMessage { subject, text, .. }) => format!("{subject}\n{text}"),
            DeliveryMessage::Json(_) | DeliveryMessage::Bulletin(_) => String::new(),
        }
    }

    #[tokio::test]
    async fn each_notice_goes_once_to_every_destination_of_the_operator() {
        let agent = agent(1);
        let ending = operator_alert::OperatorProblem::AgentCertificateExpiring { agent: agent.id, ends_at: at(7) };
        let found =
            Contradictions { outcomes: 9, contradicted: 7, by: vec![(agent.vantage_no, 7), (VantageNo(42), 6)] };
        let events = [
            EventKind::QuarantineChanged(agent.vantage_no, true, found.clone()),
            EventKind::QuarantineChanged(VantageNo(999), true, found),
            EventKind::AgentJoined(agent.id),
            EventKind::OperatorAlert(OperatorAlert {
                problem: operator_alert::OperatorProblem::NoAgentConnected(Some(Region::Asia)),
                has_ended: false,
            }),
            EventKind::OperatorAlert(OperatorAlert { problem: ending, has_ended: false }),
            EventKind::OperatorAlert(OperatorAlert {
                problem: operator_alert::OperatorProblem::AuthorityExpiring(at(8)),
                has_ended: false,
            }),
            EventKind::OperatorAlert(OperatorAlert {
                problem: operator_alert::OperatorProblem::UnfitHost {
                    agent: agent.id,
                    faults: "this host's resolver does not answer".to_owned(),
                },
                has_ended: false,
            }),
            EventKind::OperatorAlert(OperatorAlert {
                problem: operator_alert::OperatorProblem::AcmeCertificatesExpiring {
                    first: "shop.example".to_owned(),
                    count: 3,
                    ends_at: at(8),
                },
                has_ended: false,
            }),
        ];
        let both = written(
            OperatorAlertConsumer { by_mail: true, by_webhook: true, installation: "status.example".to_owned() },
            &events,
        )
        .await;
        assert_eq!(both.len(), 12, "{both:?}");
        let mails: Vec<String> = both.iter().map(|delivery| text(&delivery.message)).collect();
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
        let mail = written(OperatorAlertConsumer { by_mail: true, ..OperatorAlertConsumer::default() }, &events).await;
        assert!(mail.len() == 6 && mail.iter().all(|one| one.to == Recipient::OperatorMail));
        assert!(written(OperatorAlertConsumer::default(), &events).await.is_empty());
    }
}
