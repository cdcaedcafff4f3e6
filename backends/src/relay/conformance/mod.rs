//! Conformance tests of the relay, run on both backends. Each module covers one trait or one part
//! of its contract.

mod claim_ends;
mod claims;
mod key_value_memory;
mod playground_runs;
mod queue_slots;
#[cfg(feature = "real-services")]
mod real_equivalence;
mod reply_log;
mod round_robin;
mod routing_state;
mod support;

use self::support::World;

macro_rules! suite {
    ($world:expr, $($part:ident: [$($test:ident),* $(,)?]),* $(,)?) => {
        $(mod $part {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::super::$part::$test($world.await).await;
                }
            )*
        })*
    };
}

macro_rules! conformance_tests {
    ($backend:ident, $world:expr) => {
        mod $backend {
            suite!(
                $world,
                claims: [
                    reply_is_granted_to_one_of_many_claimers,
                    conversation_has_one_claimed_reply_at_a_time,
                    expired_lease_is_granted_with_a_higher_attempt,
                    heartbeat_renews_the_lease,
                    remaining_lease_is_that_of_the_valid_claim,
                    claim_after_the_last_attempt_gives_up,
                    lowest_attempt_of_the_request_is_respected,
                    repeated_claim_of_an_attempt_is_granted_again,
            released_claim_is_granted_at_once_and_costs_no_attempt,
                    voided_publish_is_not_claimed,
                    cancellation_is_returned_by_append_heartbeat_and_finalize,
                    cancellation_before_the_first_claim_reaches_its_holder,
                    cancelled_reply_with_a_slot_ends_before_its_claim,
                    final_or_finalized_reply_is_not_cancelled,
                    overtaken_holder_in_its_conversation_is_fenced,
                ],
                reply_log: [
                    invalid_token_changes_nothing,
                    frames_are_logged_in_order_and_repeats_ignored,
                    frames_are_pushed_in_order,
                    missed_frames_are_read_from_the_log,
                    heartbeat_is_pushed_and_not_logged,
                    waiting_is_pushed_without_a_claim_and_not_logged,
                    slow_listener_loses_frames_and_the_log_does_not,
                    new_generation_starts_a_new_log,
                    missing_frames_are_reported_as_lost_state,
                    unknown_claim_is_reported_as_lost_state_and_restored,
                    restore_is_refused_after_another_claim,
                    restored_log_accepts_one_gap,
                    outcome_of_a_metadata_change_is_pushed,
                    routing_of_a_playground_run_is_pushed,
                ],
                claim_ends: [
                    finalized_end_is_hidden_until_completion,
                    finalized_reply_accepts_no_other_text_or_end,
                    stored_end_is_logged_whatever_was_finalized,
                    cancelled_reply_accepts_only_a_cancelled_end,
                    finalized_end_is_handed_to_the_next_holder,
                    stored_reply_is_left_to_announce,
                    stored_reply_frees_its_conversation,
                    completed_reply_is_done_and_its_message_count_known,
                    repeated_completion_has_no_effect,
                    deleted_reply_has_no_text_and_stays_done,
                ],
                queue_slots: [
                    full_queue_accepts_only_replies_that_have_a_slot,
                    replies_with_a_slot_are_known_by_their_conversation,
                    concurrent_reservations_stay_within_the_limit,
                    completed_reply_frees_its_slot_and_needs_none,
                    claim_knows_the_age_of_the_slot,
                    voided_publish_frees_its_slot,
                ],
                routing_state: [first_decision_of_a_message_is_kept_and_the_last_known],
                key_value_memory: [concurrent_inserts_return_one_value, check_succeeds],
                playground_runs: [playground_run_is_read_by_another_process_by_its_id],
                round_robin: [
                    message_counts_once_and_counts_stay_even,
                    present_member_is_never_skipped_twice,
                    new_or_returning_member_starts_level_with_the_others,
                    decided_message_keeps_its_decision_and_takes_no_turn,
                ],
            );
        }
    };
}

conformance_tests!(embedded, crate::relay::conformance::World::embedded());
#[cfg(feature = "real-services")]
conformance_tests!(real_redis, crate::relay::conformance::World::redis());
