//! Partition counts of topics and the partition of a key, the same for both backends.

use switchboard_schemas::topics::Topic;

/// Maximum number of partitions of the dead-letter topic, which has few records.
const DEAD_LETTER_PARTITIONS_MAX: u32 = 8;

/// Returns the number of partitions of a new topic.
pub(super) fn partition_count(topic: Topic, configured: u32) -> u32 {
    let configured = configured.max(1);
    match topic {
        Topic::Route | Topic::Jobs | Topic::JobsRetry | Topic::Messages => configured,
        Topic::DeadLetters => configured.min(DEAD_LETTER_PARTITIONS_MAX),
        // One partition keeps the changes of all resources in one order.
        Topic::Control => 1,
    }
}

/// Returns the partition of a key, the same one that Kafka clients choose.
pub(super) fn partition_of_key(key: &str, count: u32) -> u32 {
    (murmur2(key.as_bytes()) & 0x7fff_ffff) % count.max(1)
}

fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const MIX: u32 = 0x5bd1_e995;
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let (words, tail) = data.as_chunks::<4>();
    let mut hash = words.iter().fold(SEED ^ length, |hash, word| {
        let word = u32::from_le_bytes(*word).wrapping_mul(MIX);
        hash.wrapping_mul(MIX) ^ (word ^ (word >> 24)).wrapping_mul(MIX)
    });
    if !tail.is_empty() {
        let rest = tail
            .iter()
            .rev()
            .fold(0, |rest, byte| rest << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(MIX);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MIX);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hash values of Kafka's Java client.
    #[test]
    fn keys_map_to_the_partition_of_other_kafka_clients() {
        let known = [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn key_maps_to_an_existing_partition() {
        for count in 1..20 {
            assert!(
                (0..200).all(|key| partition_of_key(&format!("conversation {key}"), count) < count)
            );
        }
    }
}
