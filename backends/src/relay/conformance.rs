//! One suite for both relays: each test is a sentence of the contract, run word for word on either twin.

mod claims;
mod ends;
mod logs;
mod memory;
#[cfg(feature = "real-services")]
mod same_table;
mod support;
mod turns;

use self::support::World;

macro_rules! suite {
    ($world:expr, $($part:ident: [$($sentence:ident),* $(,)?]),* $(,)?) => {
        $(mod $part {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $sentence() {
                    super::super::$part::$sentence($world.await).await;
                }
            )*
        })*
    };
}

macro_rules! sentences {
    ($twin:ident, $world:expr) => {
        mod $twin {
            suite!(
                $world,
                claims: [
                    of_many_that_ask_one_gets_the_reply,
                    one_reply_of_a_conversation_is_claimed_at_a_time,
                    an_ended_lease_passes_to_the_next_with_a_higher_attempt,
                    a_beat_keeps_the_claim,
                    after_the_last_attempt_died_the_next_is_told_to_give_up,
                    the_lowest_attempt_is_respected,
                    a_release_lets_the_next_claim_succeed_at_once_and_costs_no_attempt,
                    a_voided_publish_is_not_worked_on,
                    a_cancel_is_told_by_append_beat_and_seal,
                    a_cancel_before_the_first_claim_is_told_to_its_claimer,
                    a_final_or_sealed_reply_is_not_cancelled,
                    a_holder_that_was_overtaken_in_its_conversation_is_fenced,
                    it_answers_that_it_is_there,
                ],
                logs: [
                    another_token_changes_nothing,
                    frames_are_kept_in_order_and_repeats_are_ignored,
                    frames_reach_the_listener_in_order,
                    what_was_not_pushed_is_read_from_the_log,
                    a_beat_is_pushed_and_not_logged,
                    a_sign_of_waiting_is_pushed_without_a_claim_and_not_logged,
                    a_listener_that_does_not_keep_up_loses_frames_and_the_log_does_not,
                    a_new_generation_begins_a_new_log,
                    missing_frames_are_told_as_lost_memory,
                    an_unknown_claim_is_told_as_lost_memory_and_restored,
                    a_restore_is_refused_when_someone_else_has_claimed,
                    a_restored_reply_may_go_on_after_a_snapshot,
                    the_outcome_of_a_patch_reaches_the_listener,
                    the_verdict_of_a_trial_reaches_the_listener,
                ],
                ends: [
                    a_sealed_end_is_hidden_until_it_is_settled,
                    after_the_seal_no_other_text_or_end_is_taken,
                    a_cancelled_reply_takes_no_end_but_a_cancelled_one,
                    a_sealed_reply_whose_holder_died_is_to_be_stored_with_that_end,
                    a_stored_reply_that_was_not_announced_is_to_be_announced,
                    a_stored_reply_has_left_its_conversation,
                    a_settled_reply_is_done_and_its_conversation_knows_its_length,
                    a_repeated_settle_is_no_news,
                    a_forgotten_reply_has_no_text_and_stays_done,
                ],
                memory: [
                    a_full_queue_takes_no_other_reply_and_keeps_those_that_it_has,
                    of_many_that_enqueue_at_once_no_more_than_fit_are_taken,
                    a_settled_reply_gives_its_place_back_and_needs_none_again,
                    a_voided_publish_gives_its_place_back,
                    of_many_that_remember_one_name_all_hear_the_same_value,
                    the_first_decision_stands_and_the_last_of_a_conversation_is_known,
                    what_a_trial_runs_on_is_read_by_another_process_under_its_name_alone,
                ],
                turns: [
                    each_message_counts_once_and_counts_differ_by_at_most_one,
                    who_is_there_all_the_time_has_a_turn_between_any_two_of_another,
                    who_is_new_or_comes_back_makes_up_for_nothing_and_owes_nothing,
                    a_message_that_has_a_decision_keeps_it_and_takes_no_turn,
                ],
            );
        }
    };
}

sentences!(embedded, crate::relay::conformance::World::embedded());
#[cfg(feature = "real-services")]
sentences!(redis, crate::relay::conformance::World::redis());
