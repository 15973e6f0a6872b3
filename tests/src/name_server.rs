//! A name server with a fixed table (RFC 1035, A records over UDP), for namespaces that have no other.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::UdpSocket;

/// TTL of responses, in seconds.
const TTL: u32 = 1;

/// Answers queries at `address` from `names` until it is dropped. Names are in lower case, without the trailing dot.
pub async fn serve(address: SocketAddr, names: BTreeMap<String, Ipv4Addr>) -> std::io::Result<()> {
    let socket = UdpSocket::bind(address).await?;
    let mut query = [0; 512];
    loop {
        let (length, from) = socket.recv_from(&mut query).await?;
        if let Some(answer) = query.get(..length).and_then(|query| answer(query, &names)) {
            socket.send_to(&answer, from).await?;
        }
    }
}

/// Returns the response to a query: the address for type A, no data for other types, NXDOMAIN for unknown names.
/// Returns `None` if it is not a query.
fn answer(query: &[u8], names: &BTreeMap<String, Ipv4Addr>) -> Option<Vec<u8>> {
    const A: [u8; 2] = [0, 1];
    let is_query = query.get(2)? & 0x80 == 0 && query.get(4..6)? == [0, 1];
    if !is_query {
        return None;
    }
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let question = query.get(12..at + 4)?;
    let known = names.get(&labels.join("."));
    // The root always exists: agents test their name server with it.
    let exists = known.is_some() || labels.is_empty();
    let found = known.filter(|_| question.ends_with(&[A[0], A[1], 0, 1]));

    let mut out = query.get(..2)?.to_vec();
    // Response, authoritative, RD as in the query, RA set; 3 is NXDOMAIN.
    out.extend([0x84 | (query.get(2)? & 1), if exists { 0x80 } else { 0x83 }]);
    out.extend([0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
    out.extend_from_slice(question);
    if let Some(address) = found {
        // A pointer to the name in the question, then type, class, TTL, length and the address.
        out.extend([0xc0, 12, 0, 1, 0, 1]);
        out.extend(TTL.to_be_bytes());
        out.extend([0, 4]);
        out.extend(address.octets());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u8) -> Vec<u8> {
        let mut out = vec![7, 8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            out.push(u8::try_from(label.len()).unwrap());
            out.extend(label.bytes());
        }
        out.extend([0, 0, kind, 0, 1]);
        out
    }

    #[test]
    fn a_known_name_has_its_address_and_others_have_none() {
        let names = BTreeMap::from([("site.test".to_owned(), Ipv4Addr::new(5, 20, 0, 2))]);
        let found = answer(&query("Site.test", 1), &names).unwrap();
        assert!(found.starts_with(&[7, 8, 0x85, 0x80, 0, 1, 0, 1]) && found.ends_with(&[5, 20, 0, 2]));
        let other_type = answer(&query("site.test", 28), &names).unwrap();
        assert_eq!(other_type[3..8], [0x80, 0, 1, 0, 0]);
        assert_eq!(answer(&query("none.test", 1), &names).unwrap()[3], 0x83);
        assert_eq!(answer(&[0; 5], &names), None);
    }
}
