#!/usr/bin/env bats
# A live Java cluster is moved to ours and back, node by node: tests/peer/migrate, as one test.  Needs Java and Maven.

@test "a cluster of RocketMQ becomes ours and RocketMQ again; no message is lost and no client restarted" {
	cd "$BATS_TEST_DIRNAME"
	run ./migrate -b "${MQ_BUILD:?the build directory}" -l "$BATS_TEST_TMPDIR"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(grep -c '^ok ' <<<"$output")" -ge 30 ]
}
