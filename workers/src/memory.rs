//! Memory that this process may use, and the number of turns that fit into it.

use std::fs;

/// Memory of one running turn: the longest reply, its frames, its prompt and its connections.
const TURN_BYTES: u64 = 1 << 20;
/// Number of turns on the smallest machine, or where the memory is unknown.
const TURNS_MIN: u64 = 256;
/// Number of turns on the largest machine, which the heartbeats of their claims limit.
const TURNS_MAX: u64 = 16_384;

/// Returns the number of turns that fit into half of the memory.
pub(crate) fn turns_max() -> usize {
    turns_in(memory_bytes().unwrap_or_default())
}

fn turns_in(bytes: u64) -> usize {
    let turns = (bytes / 2 / TURN_BYTES).clamp(TURNS_MIN, TURNS_MAX);
    usize::try_from(turns).unwrap_or(usize::MAX)
}

/// Returns the memory of the container or, without a limit, of the machine.
fn memory_bytes() -> Option<u64> {
    let limit = fs::read_to_string("/sys/fs/cgroup/memory.max");
    let machine = fs::read_to_string("/proc/meminfo");
    let limit = limit.ok().and_then(|text| text.trim().parse().ok());
    let machine = machine.ok().and_then(|text| total_bytes(&text));
    limit.into_iter().chain(machine).min()
}

/// Returns the total of `/proc/meminfo`, which counts in kibibytes.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_from_meminfo() {
        let text = "MemTotal:       24683936 kB\nMemFree:         1000 kB\n";
        assert_eq!(total_bytes(text), Some(24_683_936 << 10));
        assert_eq!(total_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn turns_follow_the_memory_within_bounds() {
        let turns = [0, 1 << 30, 24 << 30, 1 << 40].map(turns_in);
        assert_eq!(turns, [256, 512, 12_288, 16_384]);
    }

    #[test]
    fn memory_of_this_machine_is_known() {
        assert!(memory_bytes().is_some_and(|bytes| bytes > 64 << 20));
    }
}
