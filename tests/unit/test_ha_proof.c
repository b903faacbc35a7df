/* test_ha_proof.c: the secret of replication: its file, and the proof, message by message; over sockets in tests/replication.bats. */
#include "../../bin/broker/ha_proof.h"
#include "tempdir.h"

#include <base/byte.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define TEXT "abcdefghijklmnopqrstuvwxyz0123456789"
static const struct ha_secret secret = { "this is the key of 32 bytes ...." }, other = { "and that is another of 32 bytes" };

/* ---- Two sides and what they say ----------------------------------------------------------------------------------------- */

static void begin(struct ha_proof *p, enum ha_proof_side side, const struct ha_secret *s, int draw)
{
	uint8_t mine[HA_PROOF_RANDOM];

	memset(mine, draw, sizeof mine);
	ha_proof_begin(p, side, s, mine);
}

/* `to` hears n bytes, `piece` at a time. */
static int hear(struct ha_proof *to, const uint8_t *bytes, size_t n, size_t piece, struct mq_error *why)
{
	int rc = 0;

	while (rc == 0 && n > 0) {
		size_t some = n < piece ? n : piece, room = ha_proof_room(to);

		some = some < room ? some : room;
		if (!some)
			return 0;
		memcpy(to->in + to->in_n, bytes, some);
		rc = ha_proof_took(to, some, why);
		bytes += some;
		n -= some;
	}
	return rc;
}

/* What `from` has to say is sent. */
static int say(struct ha_proof *from, struct ha_proof *to, size_t piece, struct mq_error *why)
{
	int rc = hear(to, from->out + from->out_done, from->out_n - from->out_done, piece, why);

	from->out_done = from->out_n;
	return rc;
}

static void both_have_the_secret_in_pieces_of(size_t piece)
{
	struct ha_proof m, s;
	struct mq_error why = { 0 };

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	begin(&s, HA_PROOF_SLAVE, &secret, 2);
	assert_int_equal(s.out_n, 0); /* a slave does not speak first */
	assert_int_equal(say(&m, &s, piece, &why), 0);
	assert_false(ha_proof_done(&m) || ha_proof_done(&s));
	assert_int_equal(say(&s, &m, piece, &why), 0);
	assert_false(ha_proof_done(&m)); /* it still has to say so */
	assert_int_equal(say(&m, &s, piece, &why), 0);
	assert_true(ha_proof_done(&m) && ha_proof_done(&s));
	assert_int_equal(ha_proof_room(&m) + ha_proof_room(&s), 0); /* what comes next is not theirs */
}

static void both_have_the_secret(void **state)
{
	both_have_the_secret_in_pieces_of(1);
	both_have_the_secret_in_pieces_of(7);
	both_have_the_secret_in_pieces_of(1000);
}

static void a_slave_with_another_secret(void **state)
{
	struct ha_proof m, s;
	struct mq_error why = { 0 };

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	begin(&s, HA_PROOF_SLAVE, &other, 2);
	say(&m, &s, 1000, &why);
	assert_int_equal(say(&s, &m, 1000, &why), MQ_EPROTO);
	assert_non_null(strstr(why.text, "haSecretFile"));
	assert_false(ha_proof_done(&m));
	assert_int_equal(m.out_done, m.out_n); /* and it hears nothing that it could learn from */
}

static void a_master_with_another_secret(void **state)
{
	struct ha_proof m, s, liar;
	struct mq_error why = { 0 };

	begin(&m, HA_PROOF_MASTER, &other, 1);
	begin(&s, HA_PROOF_SLAVE, &secret, 2);
	say(&m, &s, 1000, &why);
	/* It says welcome without having checked. */
	liar = m;
	liar.secret = other;
	liar.wants = 2;
	begin(&m, HA_PROOF_SLAVE, &other, 2);
	hear(&m, liar.out, HA_PROOF_CHALLENGE, 1000, &why);
	assert_int_equal(say(&m, &liar, 1000, &why), 0);
	assert_int_equal(say(&liar, &s, 1000, &why), MQ_EPROTO);
	assert_non_null(strstr(why.text, "haSecretFile"));
	assert_false(ha_proof_done(&s));
}

static void what_was_heard_once_is_worth_nothing(void **state)
{
	struct ha_proof m, s;
	struct mq_error why = { 0 };
	uint8_t answer[HA_PROOF_ANSWER], welcome[HA_PROOF_WELCOME];

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	begin(&s, HA_PROOF_SLAVE, &secret, 2);
	say(&m, &s, 1000, &why);
	memcpy(answer, s.out, sizeof answer);
	say(&s, &m, 1000, &why);
	memcpy(welcome, m.out, sizeof welcome);
	/* To a master that has drawn another number; to a slave that has. */
	begin(&m, HA_PROOF_MASTER, &secret, 3);
	assert_int_equal(hear(&m, answer, sizeof answer, 1000, &why), MQ_EPROTO);
	begin(&m, HA_PROOF_MASTER, &secret, 1);
	begin(&s, HA_PROOF_SLAVE, &secret, 4);
	say(&m, &s, 1000, &why);
	assert_int_equal(hear(&s, welcome, sizeof welcome, 1000, &why), MQ_EPROTO);
}

/* Who has no secret sends back what it hears: message by message, also with the head of the one that is wanted. */
static void nothing_can_be_sent_back(void **state)
{
	struct ha_proof m, s;
	struct mq_error why = { 0 };
	uint8_t back[HA_PROOF_ANSWER] = { 0 };

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	assert_int_equal(hear(&m, m.out, m.out_n, 1000, &why), MQ_EPROTO);
	begin(&m, HA_PROOF_MASTER, &secret, 1);
	begin(&s, HA_PROOF_SLAVE, &secret, 1); /* even if both should draw the same */
	say(&m, &s, 1000, &why);
	memcpy(back, s.out, HA_PROOF_HEAD);
	put_be32(back + HA_PROOF_HEAD - 4, 3);
	memcpy(back + HA_PROOF_HEAD, s.out + HA_PROOF_HEAD + HA_PROOF_RANDOM, HA_PROOF_HASH);
	assert_int_equal(hear(&s, back, HA_PROOF_WELCOME, 1000, &why), MQ_EPROTO);
}

/* Reports, greetings, blocks, requests: refused at the first byte that is another, without waiting for the rest. */
static void who_speaks_of_something_else_is_refused(void **state)
{
	static const uint8_t report[8] = { 0, 0, 0, 0, 0, 0, 1, 0 }, greeting[16] = { 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 };
	struct ha_proof m, s;
	struct mq_error why = { 0 };

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	assert_int_equal(hear(&m, report, 1, 1000, &why), MQ_EPROTO);
	assert_non_null(strstr(why.text, "none of RocketMQ"));
	begin(&m, HA_PROOF_MASTER, &secret, 1);
	assert_int_equal(hear(&m, greeting, sizeof greeting, 1000, &why), MQ_EPROTO);
	begin(&s, HA_PROOF_SLAVE, &secret, 1);
	assert_int_equal(hear(&s, greeting, sizeof greeting, 1000, &why), MQ_EPROTO);
	assert_non_null(strstr(why.text, "asks for no proof"));
}

/* To the peer's slaves a challenge is a block at a negative offset, or a state that there is not; a slave of ours says what it is. */
static void a_challenge_is_taken_for_nothing_else(void **state)
{
	struct ha_proof m;

	begin(&m, HA_PROOF_MASTER, &secret, 1);
	assert_true((int64_t)be64(m.out) < 0);
	assert_true((int32_t)be32(m.out) < 0);
	assert_true(be32(m.out + 8) > 64 << 20 && be32(m.out + 8) < INT32_MAX - 1000);
	assert_true(ha_proof_is_asked(m.out, 8) && ha_proof_is_asked(m.out, 20));
	assert_false(ha_proof_is_asked((const uint8_t *)"\0\0\0\0\0\0\0\0\0\0\0\0", 12));
	ha_proof_wipe(&m);
	for (size_t i = 0; i < sizeof m.secret.key; i++)
		assert_int_equal(m.secret.key[i], 0);
}

/* ---- The file ------------------------------------------------------------------------------------------------------------- */

static int read_file(void *state, const char *text, mode_t mode, struct ha_secret **s, struct mq_error *e)
{
	const char *path = tempdir_path(state, "secret");

	tempdir_write(path, text);
	assert_int_equal(chmod(path, mode), 0);
	return ha_secret_read(s, path, e);
}

static void a_file_gives_a_key(void **state)
{
	struct ha_secret *a, *b, *c;
	struct mq_error e;

	assert_int_equal(read_file(*state, TEXT, 0600, &a, &e), 0);
	assert_int_equal(read_file(*state, TEXT " \r\n\n", 0400, &b, &e), 0); /* as editors leave it */
	unlink(tempdir_path(*state, "secret"));
	assert_int_equal(read_file(*state, TEXT "x", 0600, &c, &e), 0);
	assert_memory_equal(a->key, b->key, sizeof a->key);
	assert_memory_not_equal(a->key, c->key, sizeof a->key);
	ha_secret_free(a);
	ha_secret_free(b);
	ha_secret_free(c);
	ha_secret_free(NULL);
}

static void refused(void *state, const char *text, mode_t mode, const char *says)
{
	struct ha_secret *s = (struct ha_secret *)1;
	struct mq_error e = { 0 };

	assert_int_equal(read_file(state, text, mode, &s, &e), MQ_EINVAL);
	assert_null(s);
	assert_non_null(strstr(e.text, says));
	assert_non_null(strstr(e.text, "haSecretFile"));
	assert_null(strstr(e.text, "abcdefgh"));
	unlink(tempdir_path(state, "secret"));
}

static void a_file_that_is_none_is_refused(void **state)
{
	char *much = malloc(HA_SECRET_MOST + 2);
	struct ha_secret *s;
	struct mq_error e;

	refused(*state, TEXT, 0640, "chmod 600");
	refused(*state, TEXT, 0604, "chmod 600");
	refused(*state, TEXT, 0620, "chmod 600");
	refused(*state, "abcdefgh", 0600, "fewer than 32");
	refused(*state, "", 0600, "fewer than 32");
	refused(*state, "abcdefgh                             \n", 0600, "fewer than 32");
	memset(much, 'a', HA_SECRET_MOST + 1);
	much[HA_SECRET_MOST + 1] = 0;
	refused(*state, much, 0600, "more than 4096");
	free(much);
	assert_int_equal(ha_secret_read(&s, *state, &e), MQ_EINVAL); /* a directory */
	assert_non_null(strstr(e.text, "is no file"));
	assert_true(ha_secret_read(&s, tempdir_path(*state, "none"), &e) < 0);
	assert_non_null(strstr(e.text, "none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_have_the_secret),
		cmocka_unit_test(a_slave_with_another_secret),
		cmocka_unit_test(a_master_with_another_secret),
		cmocka_unit_test(what_was_heard_once_is_worth_nothing),
		cmocka_unit_test(nothing_can_be_sent_back),
		cmocka_unit_test(who_speaks_of_something_else_is_refused),
		cmocka_unit_test(a_challenge_is_taken_for_nothing_else),
		cmocka_unit_test_setup_teardown(a_file_gives_a_key, tempdir_make, tempdir_remove),
		cmocka_unit_test_setup_teardown(a_file_that_is_none_is_refused, tempdir_make, tempdir_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
