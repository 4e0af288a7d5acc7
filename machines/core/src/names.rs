//! Names of what is made for a Machine, and which names the API server and KubeVirt accept.

use object::digest;

/// The longest name of a Machine: it becomes a label value and a hostname, which end at 63
/// characters.
pub const LONGEST: usize = 63;
/// The volume with cloud-init data.
pub const CLOUD_INIT_VOLUME: &str = "cloudinitdisk";
/// The volume with an ISO image.
pub const ISO_VOLUME: &str = "cdrom-iso";

/// Whether `name` is a DNS-1123 label.
#[must_use]
pub fn is_label(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = name.as_bytes();
    bytes.len() <= LONGEST && bytes.iter().all(|byte| inner(*byte)) && edge(bytes.first()) && edge(bytes.last())
}

/// Whether `name` is a DNS-1123 subdomain, as names of most objects are.
#[must_use]
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether KubeVirt accepts it as the name of an interface
/// (pkg/virt-api/webhooks/validating-webhook, K10): letters, digits, dashes and underscores.
#[must_use]
pub fn is_interface(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.len() <= LONGEST && name.bytes().all(inner)
}

/// The claim of a disk.
#[must_use]
pub fn claim(machine: &str, disk: &str) -> String {
    format!("{machine}-{disk}")
}

/// The Secret with cloud-init data.
#[must_use]
pub fn cloud_init_secret(machine: &str) -> String {
    format!("{machine}-cloudinit")
}

/// The MAC address of an interface without one: locally administered, and the same whenever the
/// Machine is made anew under its name, so that leases and licences hold.
#[must_use]
pub fn mac_address(namespace: &str, machine: &str, interface: &str) -> String {
    let hash = digest::of_bytes(format!("{namespace}/{machine}/{interface}").as_bytes());
    let pairs: Vec<_> = (0..5).filter_map(|pair| hash.get(pair * 2..pair * 2 + 2)).collect();
    format!("02:{}", pairs.join(":"))
}

/// Whether `address` is the MAC address of one card: six pairs of hexadecimal digits, neither
/// multicast nor all zeros.
#[must_use]
pub fn is_mac_address(address: &str) -> bool {
    let separator = if address.contains('-') { '-' } else { ':' };
    let pairs: Vec<_> = address.split(separator).collect();
    let is_pair = |pair: &&str| pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit());
    let first = pairs.first().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(1);
    pairs.len() == 6 && pairs.iter().all(is_pair) && first % 2 == 0 && pairs.iter().any(|pair| *pair != "00")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_local_stable_and_their_own() {
        assert_eq!(mac_address("default", "basic-vm", "default"), "02:c0:19:97:ef:da");
        assert!(is_mac_address("02:c0:19:97:ef:da") && is_mac_address("52-54-00-12-34-56"));
        for wrong in
            ["", "02:c0:19:97:ef", "03:c0:19:97:ef:da", "00:00:00:00:00:00", "02:c0:19:97:ef:zz", "2:c0:19:97:ef:da1"]
        {
            assert!(!is_mac_address(wrong), "{wrong}");
        }
    }

    #[test]
    fn labels_end_at_63_characters() {
        assert!(is_label("a") && is_label(&"a".repeat(63)) && !is_label(&"a".repeat(64)));
        assert!(!is_label("") && !is_label("A") && !is_label("a.b") && !is_label("-a") && !is_label("a-"));
        assert!(is_subdomain("a.b") && !is_subdomain("a..b"));
    }
}
