#!/usr/bin/env bats
# Replication under a controller in the simulator (tests/sim/README.md): random schedules of crashes, partitions and stopped disks keep
# every promise; faults that were put in on purpose are found.  MQ_SIM_SCHEDULES: how many schedules (500); MQ_SIM_SEED: the first.

setup() {
	load helpers
	mq_setup
	sim="$MQ_BUILD/tests/sim/sim"
}

teardown() {
	mq_teardown
}

@test "random schedules of three brokers and three controllers break no promise" {
	run "$sim" --seed "${MQ_SIM_SEED:-1}" --schedules "${MQ_SIM_SCHEDULES:-500}"
	assert_success
	assert_output --partial "broken promises in 0"
}

@test "a seed replays to the letter" {
	"$sim" --seed 77 --schedules 1 -v >one
	"$sim" --seed 77 --schedules 1 -v >two
	cmp one two
	run grep -c 'fault:' one
	assert_success
}

@test "a master that forgets what it has proposed is found" {
	run "$sim" --bug 1 --schedules 2000
	assert_failure 1
	assert_output --regexp "seed [0-9]+: broker . became master .* without message"
}

@test "a slave that reports what it has not flushed is found" {
	run "$sim" --bug 2 --schedules 2000
	assert_failure 1
	assert_output --regexp "seed [0-9]+: broker . became master .* without message"
}

@test "a slave that only compares lengths is found" {
	run "$sim" --bug 3 --schedules 2000
	assert_failure 1
	assert_output --regexp "seed [0-9]+: "
}
