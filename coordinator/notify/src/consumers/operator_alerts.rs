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
        for journal_event in events {
            let (by_mail, by_webhook) = (self.by_mail, self.by_webhook);
            if !by_mail && !by_webhook {
                break;
            }
            let Some(notification) = operator_notification(journal_event, read)? else { continue };
            let (json, mail) = render_operator_alert(&notification, &self.installation);
            let name = notification.problem.event_name();
            if by_webhook {
                batch.write(operator_delivery(
                    journal_event,
                    Recipient::OperatorWebhook,
                    name,
                    DeliveryMessage::Json(json),
                    now,
                ));
            }
            if by_mail {
                batch.write(operator_delivery(
                    journal_event,
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
fn operator_notification(journal_event: &JournalEvent, read: &dyn StoreRead) -> Result<Option<OperatorNotification>> {
    let (problem, has_ended) = match &journal_event.event.kind {
        EventKind::QuarantineChanged(vantage, has_begun, contradictions) => {
            (quarantine_details(*vantage, contradictions, read)?, !has_begun)
        }
        EventKind::OperatorAlert(alert) => (Some(problem_details(&alert.problem, read)?), alert.has_ended),
        _ => return Ok(None),
    };
    Ok(problem.map(|problem| OperatorNotification { problem, has_ended, at: journal_event.event.at }))
}

/// `None` if the operator removed the agent.
fn quarantine_details(
    vantage: VantageNo,
    contradictions: &Contradictions,
    read: &dyn StoreRead,
) -> Result<Option<ProblemDetails>> {
    let agents: BTreeMap<VantageNo, AgentRecord> =
        read.agents()?.into_iter().map(|agent| (agent.value.vantage_no, agent.value)).collect();
    let name = |vantage: VantageNo| match agents.get(&vantage) {
        Some(agent) => format!("{} ({})", agent.name, agent.network),
        None => format!("place {}", vantage.0),
    };
    let contradicted_by = (!contradictions.by.is_empty()).then(|| contradictions.describe(name));
    Ok(agents.get(&vantage).map(|agent| ProblemDetails::AgentQuarantined {
        contradicted_by,
        agent: AgentLabel { name: agent.name.clone(), network: agent.network.clone() },
        region: agent.region,
    }))
}

fn problem_details(problem: &operator_alert::OperatorProblem, read: &dyn StoreRead) -> Result<ProblemDetails> {
    Ok(match problem {
        operator_alert::OperatorProblem::NoAgentConnected(region) => ProblemDetails::NoAgentConnected(*region),
        operator_alert::OperatorProblem::SingleNetwork(region) => ProblemDetails::SingleNetwork(*region),
        operator_alert::OperatorProblem::DiskNearlyFull(free) => ProblemDetails::DiskNearlyFull(*free),
        operator_alert::OperatorProblem::AgentCertificateExpiring { agent, ends_at } => {
            ProblemDetails::CertificateExpiring { agent: Some(agent_name(*agent, read)?), ends_at: *ends_at }
        }
        operator_alert::OperatorProblem::AuthorityExpiring(ends_at) => {
            ProblemDetails::CertificateExpiring { agent: None, ends_at: *ends_at }
        }
        operator_alert::OperatorProblem::TasksCrashed(tasks) => ProblemDetails::TasksCrashed(*tasks),
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
    journal_event: &JournalEvent,
    to: Recipient,
    event: &str,
    message: DeliveryMessage,
    now: Timestamp,
) -> Delivery {
    Delivery {
        seq: journal_event.seq,
        ..Delivery::waiting(event_delivery_id(journal_event, to), to, event, message, now)
    }
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

    async fn deliveries_for(consumer: OperatorAlertConsumer, events: &[EventKind]) -> Vec<Delivery> {
        let store = Store::in_memory().unwrap();
        let mut batch = Batch::new();
        batch.write(agent(1));
        for kind in events {
            batch.event(Event { at: at(5), page: None, monitor: None, kind: kind.clone() });
        }
        store.commit(batch).await.unwrap();
        let (consumer, clock) = (Arc::new(consumer), Clock::manual(at(9)));
        // Reading an event twice would give the same ids.
        while consume_next(&consumer, &store, &clock).await.unwrap() != ConsumerTurn::Idle {}
        let stored = store.reader().deliveries_of(None, None, 99).unwrap();
        stored.into_iter().map(|delivery| delivery.value).collect()
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
        let expiring = operator_alert::OperatorProblem::AgentCertificateExpiring { agent: agent.id, ends_at: at(7) };
        let contradictions =
            Contradictions { outcomes: 9, contradicted: 7, by: vec![(agent.vantage_no, 7), (VantageNo(42), 6)] };
        let events = [
            EventKind::QuarantineChanged(agent.vantage_no, true, contradictions.clone()),
            EventKind::QuarantineChanged(VantageNo(999), true, contradictions),
            EventKind::AgentJoined(agent.id),
            EventKind::OperatorAlert(OperatorAlert {
                problem: operator_alert::OperatorProblem::NoAgentConnected(Some(Region::Asia)),
                has_ended: false,
            }),
            EventKind::OperatorAlert(OperatorAlert { problem: expiring, has_ended: false }),
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
        let both = deliveries_for(
            OperatorAlertConsumer { by_mail: true, by_webhook: true, installation: "status.example".to_owned() },
            &events,
        )
        .await;
        assert_eq!(both.len(), 12, "{both:?}");
        let mails: Vec<String> = both.iter().map(|delivery| text(&delivery.message)).collect();
        for text in [
            "no agent in Asia",
            agent.name.as_str(),
            "authority's certificate expires soon",
            "shop.example",
            "7 of 9 results contradicted",
            "6 by place 42",
            "resolver does not answer",
        ] {
            let named = mails.iter().any(|mail| mail.to_lowercase().contains(&text.to_lowercase()));
            assert!(named, "{text}: {mails:?}");
        }
        let mail =
            deliveries_for(OperatorAlertConsumer { by_mail: true, ..OperatorAlertConsumer::default() }, &events).await;
        assert!(mail.len() == 6 && mail.iter().all(|one| one.to == Recipient::OperatorMail));
        assert!(deliveries_for(OperatorAlertConsumer::default(), &events).await.is_empty());
    }
}
