//! Which job runs next: one at a time in each lane, in order; many lanes at once, up to a bound. Pure.
//!
//! A lane is a conversation's turns, or its changes of metadata. It stays held while its job is parked, so that what
//! follows in the conversation waits without a slot being occupied.

use std::collections::{HashMap, VecDeque};

/// What a lane carries; each kind has slots of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneKind {
    /// Messages that are to be answered.
    Turns,
    /// Changes of metadata, which run beside a reply.
    Patches,
}

const KINDS: usize = 2;

/// One line of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    /// The conversation.
    pub(crate) key: String,
    /// What of it.
    pub(crate) kind: LaneKind,
}

/// The jobs that wait, and how many run.
pub(crate) struct Dispatcher<T> {
    lanes: HashMap<LaneKey, Lane<T>>,
    /// Lanes whose first job may start, each at most once.
    ready: [VecDeque<LaneKey>; KINDS],
    running: [usize; KINDS],
    running_max: [usize; KINDS],
    waiting: usize,
}

struct Lane<T> {
    jobs: VecDeque<T>,
    /// Whether a job of it runs or is parked.
    held: bool,
}

impl<T> Dispatcher<T> {
    pub(crate) fn new(turns_max: usize, patches_max: usize) -> Self {
        Self {
            lanes: HashMap::new(),
            ready: [VecDeque::new(), VecDeque::new()],
            running: [0; KINDS],
            running_max: [turns_max, patches_max],
            waiting: 0,
        }
    }

    /// Jobs that wait in lanes.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// The jobs that wait in lanes, in no order.
    pub(crate) fn jobs_waiting(&self) -> impl Iterator<Item = &T> {
        self.lanes.values().flat_map(|lane| &lane.jobs)
    }

    /// Adds a job at the end of its lane.
    pub(crate) fn push(&mut self, key: LaneKey, job: T) {
        let lane = self.lanes.entry(key.clone()).or_insert(Lane {
            jobs: VecDeque::new(),
            held: false,
        });
        lane.jobs.push_back(job);
        self.waiting += 1;
        if !lane.held && lane.jobs.len() == 1 {
            self.ready[key.kind as usize].push_back(key);
        }
    }

    /// Takes the next job that may run; its lane is held until [`Self::finished`] or [`Self::release`].
    pub(crate) fn start(&mut self) -> Option<(LaneKey, T)> {
        (0..KINDS).find_map(|kind| self.start_kind(kind))
    }

    /// The job of a lane has ended for good: the next one may start.
    pub(crate) fn finished(&mut self, key: &LaneKey) {
        self.parked(key);
        self.release(key);
    }

    /// The job of a lane no longer runs, but its lane stays held.
    pub(crate) fn parked(&mut self, key: &LaneKey) {
        let running = &mut self.running[key.kind as usize];
        *running = running.saturating_sub(1);
    }

    /// A parked job is to run again, before everything else of its lane.
    pub(crate) fn resume(&mut self, key: &LaneKey, job: T) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.jobs.push_front(job);
            lane.held = false;
            self.waiting += 1;
            self.ready[key.kind as usize].push_back(key.clone());
        }
    }

    /// Gives up the hold of a lane whose parked job is forgotten.
    pub(crate) fn release(&mut self, key: &LaneKey) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.held = false;
        if lane.jobs.is_empty() {
            self.lanes.remove(key);
        } else {
            self.ready[key.kind as usize].push_back(key.clone());
        }
    }

    /// Drops waiting jobs; those that run are left alone.
    pub(crate) fn forget(&mut self, mut unwanted: impl FnMut(&T) -> bool) {
        for lane in self.lanes.values_mut() {
            let before = lane.jobs.len();
            lane.jobs.retain(|job| !unwanted(job));
            self.waiting -= before - lane.jobs.len();
        }
        self.lanes
            .retain(|_, lane| lane.held || !lane.jobs.is_empty());
        for ready in &mut self.ready {
            ready.retain(|key| {
                self.lanes
                    .get(key)
                    .is_some_and(|lane| !lane.jobs.is_empty())
            });
        }
    }

    fn start_kind(&mut self, kind: usize) -> Option<(LaneKey, T)> {
        if self.running[kind] >= self.running_max[kind] {
            return None;
        }
        let key = self.ready[kind].pop_front()?;
        let lane = self.lanes.get_mut(&key)?;
        let job = lane.jobs.pop_front()?;
        lane.held = true;
        self.waiting -= 1;
        self.running[kind] += 1;
        Some((key, job))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn lane(number: u8) -> LaneKey {
        let kind = if number.is_multiple_of(2) {
            LaneKind::Turns
        } else {
            LaneKind::Patches
        };
        LaneKey {
            key: (number / 2).to_string(),
            kind,
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u8),
        Start,
        Finish(usize),
        Park(usize),
        Resume(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u8..6).prop_map(Step::Push),
            3 => Just(Step::Start),
            2 => any::<usize>().prop_map(Step::Finish),
            1 => any::<usize>().prop_map(Step::Park),
            1 => any::<usize>().prop_map(Step::Resume),
        ];
        prop::collection::vec(step, 0..200)
    }

    /// Plays any story and then lets everything end; tells the order in which jobs ended per lane.
    fn play(steps: Vec<Step>) -> (BTreeMap<String, Vec<u32>>, u32) {
        let mut dispatcher = Dispatcher::new(2, 1);
        let mut running: Vec<(LaneKey, u32)> = Vec::new();
        let mut parked = Vec::new();
        let mut ended: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut pushed = 0;
        let drain = (0..1000).map(|_| [Step::Resume(0), Step::Start, Step::Finish(0)]);
        for step in steps.into_iter().chain(drain.flatten()) {
            match step {
                Step::Push(number) => {
                    dispatcher.push(lane(number), pushed);
                    pushed += 1;
                }
                Step::Start => running.extend(dispatcher.start()),
                Step::Finish(index) if !running.is_empty() => {
                    let (key, job) = running.remove(index % running.len());
                    dispatcher.finished(&key);
                    ended.entry(format!("{key:?}")).or_default().push(job);
                }
                Step::Park(index) if !running.is_empty() => {
                    let (key, job) = running.remove(index % running.len());
                    dispatcher.parked(&key);
                    parked.push((key, job));
                }
                Step::Resume(index) if !parked.is_empty() => {
                    let (key, job) = parked.remove(index % parked.len());
                    dispatcher.resume(&key, job);
                }
                _ => {}
            }
            let mut held: Vec<_> = running.iter().chain(&parked).map(|(key, _)| key).collect();
            let all = held.len();
            held.sort_by_key(|key| format!("{key:?}"));
            held.dedup();
            assert_eq!(held.len(), all, "two jobs of one lane at once");
            assert!(
                running
                    .iter()
                    .filter(|(key, _)| key.kind == LaneKind::Turns)
                    .count()
                    <= 2
            );
            assert!(
                running
                    .iter()
                    .filter(|(key, _)| key.kind == LaneKind::Patches)
                    .count()
                    <= 1
            );
        }
        assert_eq!(dispatcher.waiting(), 0);
        assert!(dispatcher.lanes.is_empty(), "an idle lane costs nothing");
        (ended, pushed)
    }

    proptest! {
        #[test]
        fn every_job_ends_once_and_in_order_within_its_lane(steps in steps()) {
            let (ended, pushed) = play(steps);
            prop_assert_eq!(ended.values().map(Vec::len).sum::<usize>(), pushed as usize);
            for jobs in ended.values() {
                prop_assert!(jobs.is_sorted());
            }
        }
    }

    #[test]
    fn lanes_run_side_by_side_and_a_patch_beside_its_reply() {
        let mut dispatcher = Dispatcher::new(2, 1);
        for number in [0, 2, 1] {
            dispatcher.push(lane(number), number);
        }
        let started: Vec<_> = std::iter::from_fn(|| dispatcher.start())
            .map(|(_, job)| job)
            .collect();
        assert_eq!(started, [0, 2, 1]);
    }

    #[test]
    fn forgotten_jobs_never_start_and_others_of_the_lane_do() {
        let mut dispatcher = Dispatcher::new(1, 1);
        for job in [1, 2, 3] {
            dispatcher.push(lane(0), job);
        }
        let (key, _) = dispatcher.start().unwrap();
        dispatcher.forget(|job| *job == 2);
        dispatcher.finished(&key);
        assert_eq!(dispatcher.start().map(|(_, job)| job), Some(3));
    }
}
