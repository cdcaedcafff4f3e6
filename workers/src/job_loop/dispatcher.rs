//! Schedules jobs: one at a time in each lane, in order; many lanes at once, up to a bound. While
//! more lanes wait than may run, they start round-robin by organization, as far as each may have
//! slots. Pure.
//!
//! A lane carries the turns or the metadata patches of one conversation. It stays held while its
//! job is parked, so that later jobs of the conversation wait without occupying a slot.

use std::collections::{BTreeMap, HashMap, VecDeque};

use switchboard_schemas::ids::OrgId;

use super::{fair_queue::FairQueue, slots::SharedSlots};
use crate::config::WorkersConfig;

/// Kind of the jobs in a lane. Patches have slots of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneKind {
    /// Messages to answer, and deletions.
    Turns,
    /// Metadata patches, which run beside a reply.
    Patches,
    /// Replies of silent workers, each record in a lane of its own. They start first, because
    /// their clients are in the middle of a reply, and are not counted as waiting, because they
    /// repeat jobs that are.
    Takeovers,
}

const LANE_KINDS: usize = 3;
const SLOT_KINDS: usize = 2;

impl LaneKind {
    const STARTING_ORDER: [Self; LANE_KINDS] = [Self::Takeovers, Self::Turns, Self::Patches];

    /// Returns the index of the slots that jobs of this kind occupy.
    const fn slots(self) -> usize {
        match self {
            Self::Turns | Self::Takeovers => 0,
            Self::Patches => 1,
        }
    }

    /// Returns true if waiting jobs of this kind count against the bound of waiting jobs.
    pub(crate) const fn is_counted(self) -> bool {
        !matches!(self, Self::Takeovers)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    /// Conversation id, or the record key of an unreadable record.
    pub(crate) key: String,
    pub(crate) kind: LaneKind,
}

/// A job with its place among the others.
pub(crate) struct DecodedJob<J> {
    pub(crate) lane: LaneKey,
    pub(crate) organization: OrgId,
    pub(crate) job: J,
}

impl LaneKey {
    /// Returns the lane of a record that cannot be decoded. It still keeps its order within the
    /// conversation that its key names.
    pub(crate) fn of_unreadable(record_key: &str) -> Self {
        Self {
            key: record_key.to_owned(),
            kind: LaneKind::Turns,
        }
    }
}

/// Waiting jobs by lane, and the number of running jobs by kind.
pub(crate) struct LaneDispatcher<T> {
    lanes: HashMap<LaneKey, JobLane<T>>,
    /// Lanes whose first job may start, each at most once.
    ready: [FairQueue<Option<OrgId>, LaneKey>; LANE_KINDS],
    slots: [SharedSlots; SLOT_KINDS],
    /// Weights of the organizations that have another one than 1.
    weights: BTreeMap<OrgId, u32>,
    /// Number of waiting jobs that are counted.
    waiting: usize,
}

struct JobLane<T> {
    /// `None` if the first record of the lane is unreadable.
    organization: Option<OrgId>,
    jobs: VecDeque<T>,
    /// True while a job of the lane runs or is parked.
    held: bool,
}

impl<T> LaneDispatcher<T> {
    pub(crate) fn new(config: &WorkersConfig) -> Self {
        let slots = [config.turns_max(), config.patches_in_flight_max];
        Self {
            lanes: HashMap::new(),
            ready: [FairQueue::new(), FairQueue::new(), FairQueue::new()],
            slots: slots.map(SharedSlots::new),
            weights: config.weights.clone(),
            waiting: 0,
        }
    }

    /// Returns the number of jobs that wait in lanes, without takeovers.
    pub(crate) const fn waiting_count(&self) -> usize {
        self.waiting
    }

    /// Returns the jobs that wait in lanes, in no particular order.
    pub(crate) fn waiting_jobs(&self) -> impl Iterator<Item = &T> {
        self.lanes.values().flat_map(|lane| &lane.jobs)
    }

    /// Adds a job at the end of its lane. Its organization is unknown if its record is unreadable.
    pub(crate) fn push_job(&mut self, key: LaneKey, organization: Option<OrgId>, job: T) {
        let lane = self.lanes.entry(key.clone()).or_insert_with(|| JobLane {
            organization,
            jobs: VecDeque::new(),
            held: false,
        });
        lane.jobs.push_back(job);
        self.waiting += usize::from(key.kind.is_counted());
        if !lane.held && lane.jobs.len() == 1 {
            self.ready[key.kind as usize].push(&lane.organization, key);
        }
    }

    /// Takes the next job that may run. Its lane is held until [`Self::finish_job`] or
    /// [`Self::release_lane`].
    pub(crate) fn start_next(&mut self) -> Option<(LaneKey, T)> {
        LaneKind::STARTING_ORDER
            .into_iter()
            .find_map(|kind| self.start_next_of(kind))
    }

    /// Frees the slot and the lane of a job that ended for good; the next job of the lane may
    /// start.
    pub(crate) fn finish_job(&mut self, key: &LaneKey) {
        self.park_job(key);
        self.release_lane(key);
    }

    /// Frees the slot of a job that will run again; its lane stays held.
    pub(crate) fn park_job(&mut self, key: &LaneKey) {
        if let Some(lane) = self.lanes.get(key) {
            self.slots[key.kind.slots()].free(&lane.organization);
        }
    }

    /// Puts a parked job back at the front of its lane.
    pub(crate) fn resume_job(&mut self, key: &LaneKey, job: T) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.jobs.push_front(job);
            lane.held = false;
            self.waiting += usize::from(key.kind.is_counted());
            self.ready[key.kind as usize].push(&lane.organization, key.clone());
        }
    }

    /// Releases the lane of a parked job that was dropped.
    pub(crate) fn release_lane(&mut self, key: &LaneKey) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.held = false;
        if lane.jobs.is_empty() {
            self.lanes.remove(key);
        } else {
            self.ready[key.kind as usize].push(&lane.organization, key.clone());
        }
    }

    /// Drops the waiting jobs for which `unwanted` returns true; running jobs are left alone.
    pub(crate) fn drop_waiting(&mut self, mut unwanted: impl FnMut(&T) -> bool) {
        for (key, lane) in &mut self.lanes {
            let before = lane.jobs.len();
            lane.jobs.retain(|job| !unwanted(job));
            if key.kind.is_counted() {
                self.waiting -= before - lane.jobs.len();
            }
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

    fn start_next_of(&mut self, kind: LaneKind) -> Option<(LaneKey, T)> {
        let (slots, weights) = (&mut self.slots[kind.slots()], &self.weights);
        if slots.are_full() {
            return None;
        }
        let key = self.ready[kind as usize].pop_where(|organization| {
            let weight = organization.as_ref().and_then(|it| weights.get(it));
            slots.may_take(organization, weight.map_or(1, |weight| *weight as usize))
        })?;
        let lane = self.lanes.get_mut(&key)?;
        let job = lane.jobs.pop_front()?;
        lane.held = true;
        self.waiting -= usize::from(kind.is_counted());
        slots.take(&lane.organization);
        Some((key, job))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use switchboard_schemas::secret::InstallationSecret;

    use super::*;

    fn lane(number: u8) -> LaneKey {
        LaneKey {
            key: (number / 3).to_string(),
            kind: LaneKind::STARTING_ORDER[usize::from(number % 3)],
        }
    }

    fn dispatcher<T>(turns_max: usize, patches_max: usize) -> LaneDispatcher<T> {
        LaneDispatcher::new(&WorkersConfig {
            in_flight_max: turns_max,
            patches_in_flight_max: patches_max,
            ..WorkersConfig::default()
        })
    }

    fn org(slug: &str) -> Option<OrgId> {
        let secret = InstallationSecret::from_bytes([7; 32]);
        Some(OrgId::derive(&secret, slug))
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
            4 => (0u8..9).prop_map(Step::Push),
            3 => Just(Step::Start),
            2 => any::<usize>().prop_map(Step::Finish),
            1 => any::<usize>().prop_map(Step::Park),
            1 => any::<usize>().prop_map(Step::Resume),
        ];
        prop::collection::vec(step, 0..200)
    }

    /// Runs any sequence of steps, then lets every job end. Returns the order in which the jobs of
    /// each lane ended.
    fn play(steps: Vec<Step>) -> (BTreeMap<String, Vec<u32>>, u32) {
        let mut dispatcher = dispatcher(2, 1);
        let mut running: Vec<(LaneKey, u32)> = Vec::new();
        let mut parked = Vec::new();
        let mut ended: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        let mut pushed = 0;
        let drain = (0..1000).map(|_| [Step::Resume(0), Step::Start, Step::Finish(0)]);
        for step in steps.into_iter().chain(drain.flatten()) {
            match step {
                Step::Push(number) => {
                    let organization = org(&(number / 6).to_string());
                    dispatcher.push_job(lane(number), organization, pushed);
                    pushed += 1;
                }
                Step::Start => running.extend(dispatcher.start_next()),
                Step::Finish(index) if !running.is_empty() => {
                    let (key, job) = running.remove(index % running.len());
                    dispatcher.finish_job(&key);
                    ended.entry(format!("{key:?}")).or_default().push(job);
                }
                Step::Park(index) if !running.is_empty() => {
                    let (key, job) = running.remove(index % running.len());
                    dispatcher.park_job(&key);
                    parked.push((key, job));
                }
                Step::Resume(index) if !parked.is_empty() => {
                    let (key, job) = parked.remove(index % parked.len());
                    dispatcher.resume_job(&key, job);
                }
                _ => {}
            }
            let mut held: Vec<_> = running.iter().chain(&parked).map(|(key, _)| key).collect();
            let all = held.len();
            held.sort_by_key(|key| format!("{key:?}"));
            held.dedup();
            assert_eq!(held.len(), all, "two concurrent jobs of one lane");
            assert!(
                running
                    .iter()
                    .filter(|(key, _)| key.kind != LaneKind::Patches)
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
        assert_eq!(dispatcher.waiting_count(), 0);
        assert!(dispatcher.lanes.is_empty(), "an idle lane is kept");
        (ended, pushed)
    }

    proptest! {
        #[test]
        fn jobs_of_a_lane_end_once_in_order(steps in steps()) {
            let (ended, pushed) = play(steps);
            prop_assert_eq!(ended.values().map(Vec::len).sum::<usize>(), pushed as usize);
            for jobs in ended.values() {
                prop_assert!(jobs.is_sorted());
            }
        }
    }

    #[test]
    fn lanes_run_concurrently_and_patches_beside_replies() {
        let mut dispatcher = dispatcher(4, 1);
        for number in [1, 4, 2] {
            dispatcher.push_job(lane(number), org("acme"), number);
        }
        let started: Vec<_> = std::iter::from_fn(|| dispatcher.start_next())
            .map(|(_, job)| job)
            .collect();
        assert_eq!(started, [1, 4, 2]);
    }

    #[test]
    fn takeovers_use_slots_of_turns_and_are_not_counted() {
        let mut dispatcher = dispatcher(1, 1);
        for number in [1, 0, 3] {
            dispatcher.push_job(lane(number), org("acme"), number);
        }
        assert_eq!(dispatcher.waiting_count(), 1);
        let (key, job) = dispatcher.start_next().unwrap();
        assert_eq!((job, dispatcher.start_next()), (0, None));
        dispatcher.finish_job(&key);
        assert_eq!(dispatcher.start_next().map(|(_, job)| job), Some(3));
        assert_eq!(dispatcher.waiting_count(), 1);
    }

    #[test]
    fn busy_organization_delays_another_by_one_job() {
        let mut dispatcher = dispatcher(1, 1);
        let lane_of = |key: u32| LaneKey {
            key: key.to_string(),
            kind: LaneKind::Turns,
        };
        for key in 0..50 {
            dispatcher.push_job(lane_of(key), org("busy"), key);
        }
        let (running, _) = dispatcher.start_next().unwrap();
        dispatcher.push_job(lane_of(1_000), org("other"), 1_000);
        dispatcher.finish_job(&running);
        let (next, _) = dispatcher.start_next().unwrap();
        dispatcher.finish_job(&next);
        assert_eq!(dispatcher.start_next().map(|(_, job)| job), Some(1_000));
    }

    #[test]
    fn slow_organization_never_fills_all_slots() {
        let mut dispatcher = dispatcher(4, 1);
        let lane_of = |key: u8, kind| LaneKey {
            key: key.to_string(),
            kind,
        };
        for key in 0..50 {
            let kind = LaneKind::STARTING_ORDER[usize::from(key % 2)];
            dispatcher.push_job(lane_of(key, kind), org("slow"), key);
        }
        assert_eq!(
            std::iter::from_fn(|| dispatcher.start_next()).count(),
            3,
            "takeovers and turns"
        );
        dispatcher.push_job(lane_of(100, LaneKind::Turns), org("other"), 100);
        assert_eq!(dispatcher.start_next().map(|(_, job)| job), Some(100));
    }

    #[test]
    fn dropped_jobs_never_start() {
        let mut dispatcher = dispatcher(1, 1);
        for job in [1, 2, 3] {
            dispatcher.push_job(lane(1), org("acme"), job);
        }
        let (key, _) = dispatcher.start_next().unwrap();
        dispatcher.drop_waiting(|job| *job == 2);
        dispatcher.finish_job(&key);
        assert_eq!(dispatcher.start_next().map(|(_, job)| job), Some(3));
    }
}
