# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What continuous integration runs of the interop tests under sanitizers
(`make check-asan SHORT=1`), and on adapters without interrupts (`make
check-polled SHORT=1`): of each family of programs, and of each part of
ours that they reach, cases that are soon over. No case: the whole file; a name
without [...]: all its cases. A name that no longer exists fails the run.
"""

SHORT = {
    "address": {
        "test_pingpong": [],
        "test_windows": [
            "test_data_is_right_at_every_place", "test_atomics[self]", "test_stopped_target[self]",
            "test_target_killed", "test_initiator_killed[nobody]", "test_deregistration",
            "test_reset_of_the_targets_qp[self]", "test_link_down[nobody]", "test_fork[self-fork]"],
        "test_lanes": ["test_a_stream_loses_nothing_while_routes_change[lanes]"],
        "test_kill": ["test_the_requester_exceeds_its_retries[ib_send_bw]"],
        "test_stress": ["test_order_and_visibility[all]"],
        "test_perftest": [
            "test_transport[ib_send_lat-RC]", "test_transport[ib_write_lat-UC]",
            "test_transport[ib_send_lat-UD]", "test_transport[ib_read_lat-RC]",
            "test_atomic[ib_atomic_lat-FETCH_AND_ADD]", "test_events[ib_send_lat-RC]",
            "test_eight_queue_pairs[ib_write_bw]", "test_inline_and_gid"],
        "test_faults": [
            "test_rc_loses_nothing", "test_a_link_flaps", "test_a_scenario",
            "test_short_cuts_come_back", "test_rnr_storm_passes", "test_mads_are_lost_by_class"],
        "test_capture": [
            "test_a_signal_ends_it_with_a_whole_file", "test_a_stuck_reader_blocks_nobody",
            "test_what_a_fault_does_on_a_cable_is_seen"],
        "test_errors": [
            "test_status_with_a_cause", "test_event_with_a_cause", "test_opening_fails",
            "test_hot_unplug_under_running_programs", "test_hot_unplug_under_perftest",
            "test_hot_unplug_under_umad"],
        "test_mads": [
            "test_two_servers_of_one_class_on_a_port[softib-sm]",
            "test_a_lid_of_nobody_times_out[softib-sm]",
            "test_every_node_may_ask_the_sa[softib-sm]"],
        "test_managers": [
            "test_opensm_brings_a_pair_up", "test_large_fabric_is_discovered_whole[softib-sm]"],
        "test_sm_ibsim": ["test_a_dead_link_is_routed_around", "test_lids_are_kept"],
        "test_bad_input": [
            "test_malformed_openings", "test_malformed_commands", "test_malformed_mads",
            "test_malformed_requests", "test_scribbled_ring_is_cut_off", "test_noise_in_records",
            "test_descriptors_that_nobody_asked_for", "test_what_may_not_leave",
            "test_foreign_keys", "test_softibd_without_descriptors",
            "test_softibd_is_killed[asleep]"],
        "test_diags": ["test_smpquery", "test_perfquery_attributes"],
        "test_cli": ["test_killed_softib_leaves_nothing"],
        "test_rdma_cm": [
            "test_rping", "test_owners", "test_queries_are_listed", "test_ipv6", "test_messages",
            "test_addresses_of_infiniband", "test_ten_thousand_connections", "test_synchronous_endpoints",
            "test_any_transport", "test_steps_of_connections", "test_perftest[ib_atomic_lat -R]",
            "test_loaded_later", "test_events_that_nobody_has_read", "test_nobody_listens", "test_redirected",
            "test_unknown_addresses", "test_a_killed_server_is_a_disconnection"],
        "test_ibcm": [],
        "test_nodes": ["test_names_and_addresses[self]", "test_nodes_that_ran_nothing_yet_are_reached"],
    },
    "thread": {
        "test_pingpong": ["test_pingpong"],
        "test_windows": [
            "test_data_is_right_at_every_place[self]", "test_stopped_target[self]",
            "test_target_killed[self]", "test_initiator_killed[self]",
            "test_deregistration[self]", "test_fork[self-fork]"],
        "test_lanes": ["test_a_stream_loses_nothing_while_routes_change[lanes]"],
        "test_kill": ["test_the_requester_exceeds_its_retries[ib_send_bw]"],
        "test_perftest": [
            "test_transport[ib_send_lat-RC]", "test_events[ib_send_lat-RC]",
            "test_eight_queue_pairs[ib_send_bw]"],
        "test_errors": ["test_hot_unplug_under_running_programs"],
        "test_bad_input": ["test_hardship[threads]", "test_hardship[signals]"],
        "test_mads": ["test_two_servers_of_one_class_on_a_port[softib-sm]"],
        "test_managers": ["test_opensm_brings_a_pair_up"],
    },
    "polled": {
        "test_pingpong": ["test_pingpong", "test_asyncwatch_sees_the_link"],
        "test_perftest": [
            "test_transport[ib_send_lat-RC]", "test_transport[ib_send_lat-UD]", "test_events[ib_send_lat-RC]"],
        "test_faults": ["test_rc_loses_nothing"],
        "test_errors": ["test_hot_unplug_under_umad"],
        "test_mads": ["test_every_node_may_ask_the_sa[softib-sm]"],
        "test_managers": ["test_opensm_brings_a_pair_up"],
        "test_diags": ["test_smpquery", "test_perfquery_attributes"],
        "test_rdma_cm": ["test_rping", "test_queries_are_listed"],
        "test_ibcm": [],
        "test_modules": [],
        "test_ipoib": ["test_ping_of_all_sizes[self-datagram]", "test_ping_of_all_sizes[self-connected]"],
        "test_sdp": ["test_stream", "test_events"],
        "test_srp": ["test_an_initiator_finds_nothing_wrong", "test_units_come_and_go"],
    },
}

# where libibverbs' threads run, so ThreadSanitizer has something to see
THREADED = ("perftest", "pingpong", "windows", "lanes", "kill", "stress", "errors", "faults",
            "mads", "managers", "bad_input")


def threaded():
    """The files that `make check-tsan` runs whole."""
    return [f"tests/interop/test_{name}.py" for name in THREADED]


def cases(kinds):
    """What pytest takes on its command line. @kinds: the sanitizers of the build, or "polled"."""
    for kind in sorted(kinds & set(SHORT)):
        for file, names in SHORT[kind].items():
            path = f"tests/interop/{file}.py"
            yield from (f"{path}::{name}" for name in names) if names else (path,)
