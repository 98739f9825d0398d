//! Networks, as settings name them.

use std::net::IpAddr;
use std::str::FromStr;

/// A network, as `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    pub fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                let shift = 32_u32.saturating_sub(self.bits.into());
                u32::from(ours).checked_shr(shift) == u32::from(other).checked_shr(shift)
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                let shift = 128_u32.saturating_sub(self.bits.into());
                u128::from(ours).checked_shr(shift) == u128::from(other).checked_shr(shift)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a network: write 10.0.0.0/8, or one address");
        let (address, bits) = match text.split_once('/') {
            None => (text, None),
            Some((address, bits)) => (address, Some(bits)),
        };
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
        };
        Ok(Self { address, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses_and_no_others() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.1".parse().unwrap()));
        assert!(!network.contains("10.2.0.0".parse().unwrap()));
        assert!(!network.contains("::ffff:10.1.0.1".parse().unwrap()));
        let one: Network = "::1".parse().unwrap();
        assert!(one.contains("::1".parse().unwrap()) && !one.contains("::2".parse().unwrap()));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("9.9.9.9".parse().unwrap()));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "10.0.0.0/x", "name"] {
            assert!(bad.parse::<Network>().is_err(), "{bad}");
        }
    }
}
