/* SQL92 filters: the grammar, and what the peer makes of properties that are only text. */
#include "codec/sql.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

/* "a=1;b=x" as a properties text. */
static struct mq_str props_of(const char *spec)
{
	static char text[4096];
	size_t n = strlen(spec);

	assert_true(n < sizeof text);
	for (size_t i = 0; i < n; i++)
		text[i] = spec[i] == '=' ? 1 : spec[i] == ';' ? 2 : spec[i];
	return (struct mq_str){ text, n };
}

static bool matches(const char *expr, const char *props)
{
	struct mq_error e = { 0 };
	struct sql *s;
	bool yes;

	if (sql_compile(&s, str_of(expr), &e) < 0)
		fail_msg("%s: %s", expr, e.text);
	yes = sql_match(s, props_of(props));
	sql_free(s);
	return yes;
}

#define YES(expr, props) assert_true(matches(expr, props))
#define NO(expr, props) assert_false(matches(expr, props))

/* The text of the refusal. */
static const char *refused(const char *expr)
{
	static struct mq_error e;
	struct sql *s;

	e.text[0] = '\0';
	if (sql_compile(&s, str_of(expr), &e) != MQ_EINVAL)
		fail_msg("not refused: %s", expr);
	assert_null(s);
	return e.text;
}

#define REFUSED(expr, why) \
	do { \
		if (!strstr(refused(expr), why)) \
			fail_msg("%s: refused with '%s', not with '%s'", expr, refused(expr), why); \
	} while (0)

static void numbers_are_compared_as_numbers(void **state)
{
	YES("n > 3", "n=10");
	NO("n > 3", "n=3");
	YES("n >= 3 AND n <= 3 AND n = 3", "n=3");
	YES("n <> 3", "n=4");
	YES("3 < n", "n=4");
	NO("3 < n", "n=2");
	YES("n < -5", "n=-6");
	YES("n = +5", "n=+5");
	YES("x > 1.5", "x=1.50001");
	YES("x > 1.5", "x=2");
	YES("x = 5E2", "x=500");
	YES("x = .5", "x=0.5");
	YES("x = 5.", "x=5");
	YES("n = 3000000000", "n=3000000000");
	YES("n = 5L", "n=5");
	YES("x < 1.5", "x=-Infinity");
	YES("x > 1.5", "x=NaN");
	YES("x = 1.5", "x= 1.5f");
	YES("x = 4.0", "x=0x1p2");
	YES("n > -9223372036854775807", "n=-9223372036854775806");
	YES("1 = 1.0 AND 2 < 2.5 AND 3000000000 > 1", "");
	YES("- -5 = n", "n=5");
}

static void a_text_that_is_no_such_number_fails_the_whole(void **state)
{
	NO("n > 5", "n=7.5");           /* beside a whole number of 32 bits it has to be one */
	NO("n > 5", "n=3000000000");
	YES("n > 5.0", "n=3000000000");
	NO("n > 5", "n= 7");
	NO("n > 5", "n=x");
	NO("n > 5 OR b = 'x'", "n=x;b=x");
	YES("b = 'x' OR n > 5", "n=x;b=x");
	NO("NOT (n > 5)", "n=x");
	NO("x > 5.0", "x=1.5.5");
	NO("x > 5.0", "x=0x8");
	NO("x > 5.0", "x=9e");
	NO("TRUE = b", "b=true");       /* the peer trips over its own cast */
	YES("b = TRUE", "b=True");
	YES("b = FALSE", "b=yes");
}

static void texts_are_equal_or_not(void **state)
{
	YES("a = 'x'", "a=x");
	NO("a = 'x'", "a=X");
	YES("a <> 'x'", "a=X");
	YES("a = 'it''s'", "a=it's");
}

static void an_empty_value_is_no_property(void **state)
{
	NO("a = ''", "a=;b=1");
	YES("a IS NULL", "a=;b=1");
	YES("a = b", "c=1");
	NO("a = b", "a=1");
	NO("a <> b", "b=1");
	YES("a <> b", "a=1");
	YES("a = b", "a=1;b=1");
	NO("a = b", "a=1;b=1.0");
	YES("a >= b", "a=1;b=1.0");
	NO("a > b OR TRUE", "a=1;b=x");
}

static void the_last_of_two_properties_counts(void **state)
{
	YES("a = 'y'", "a=x;a=y");
	NO("a = 'x'", "a=x;a=y");
}

static void null_is_neither_true_nor_false(void **state)
{
	NO("n > 5", "");
	NO("NOT (n > 5)", "");
	NO("n > 5 AND TRUE", "");
	YES("n > 5 OR TRUE", "");
	YES("NOT (n > 5 AND FALSE)", "");
	NO("n <> 5", "");
	YES("n IS NULL", "");
	NO("n IS NOT NULL", "");
	YES("n IS NOT NULL", "n=0");
	YES("(n > 5) IS NULL", "");
	NO("NULL", "");
	/* What could fail on the right is not asked for beside NULL. */
	YES("n > -(5 = a) OR TRUE", "a=x");
	NO("n > -(5 = a) OR TRUE", "a=x;n=1");
	NO("a", "a=true");              /* a text is not true, whatever it says */
	YES("NOT a", "a=true");
	NO("NOT a", "");
	YES("TRUE", "");
	NO("FALSE", "");
}

static void between_takes_both_ends(void **state)
{
	YES("n BETWEEN 1 AND 3", "n=1");
	YES("n BETWEEN 1 AND 3", "n=3");
	NO("n BETWEEN 1 AND 3", "n=4");
	NO("n BETWEEN 1 AND 3", "");
	YES("n NOT BETWEEN 1 AND 3", "n=0");
	NO("n NOT BETWEEN 1 AND 3", "n=2");
	YES("n between -3 and -1 AND x = 'y'", "n=-2;x=y");
	YES("2 BETWEEN a AND b", "a=1;b=3");
	NO("n BETWEEN 5 AND -1", "n=3"); /* a sign makes it no literal: not checked */
	YES("n BETWEEN 1.5 AND 2 OR n = 'x'", "n=2");
}

static void in_looks_for_texts(void **state)
{
	struct buf many = { 0 };

	YES("c IN ('red', 'blue')", "c=blue");
	NO("c IN ('red', 'blue')", "c=green");
	NO("c IN ('red')", "");
	YES("c NOT IN ('red', 'blue')", "c=green");
	NO("c NOT IN ('red', 'blue')", "c=red");
	NO("c NOT IN ('red')", "");
	YES("(c) IN ('1')", "c=1");
	YES("c IN ('') OR TRUE", "c=x");
	buf_cstr(&many, "k IN ('0'");
	for (int i = 1; i < 1000; i++)
		buf_printf(&many, ",'%d'", i * 7);
	buf_put(&many, ")", 2);
	YES(many.p, "k=6993");
	YES(many.p, "k=0");
	YES(many.p, "k=7");
	NO(many.p, "k=7000");
	NO(many.p, "k=6");
	buf_free(&many);
}

static void parts_of_texts(void **state)
{
	YES("a CONTAINS 'b'", "a=abc");
	NO("a CONTAINS 'x'", "a=abc");
	NO("a NOT CONTAINS 'b'", "a=abc");
	YES("a NOT CONTAINS 'x'", "a=abc");
	YES("a STARTSWITH 'ab'", "a=abc");
	NO("a STARTSWITH 'abcd'", "a=abc");
	YES("a NOT STARTSWITH 'b'", "a=abc");
	YES("a ENDSWITH 'bc'", "a=abc");
	NO("a ENDSWITH 'ab'", "a=abc");
	YES("a NOT ENDSWITH 'ab'", "a=abc");
	YES("a CONTAINS '签'", "a=标签");
	/* False without the property, and for no text, also with NOT. */
	NO("a NOT CONTAINS 'x'", "");
	NO("a NOT STARTSWITH 'x'", "");
	NO("a NOT ENDSWITH 'x'", "");
	NO("a CONTAINS ''", "a=abc");
	NO("a NOT CONTAINS ''", "a=abc");
	YES("NOT (a CONTAINS '')", "a=abc");
	YES("(n > 5) CONTAINS '' OR TRUE", "n=x"); /* what is on the left is not asked for */
	NO("5 CONTAINS '5'", "");
	YES("'abc' CONTAINS 'b'", "");
}

static void words_bind_as_in_the_grammar(void **state)
{
	YES("a = 1 OR b = 1 AND c = 1", "a=1");
	NO("(a = 1 OR b = 1) AND c = 1", "a=1");
	NO("NOT a = 1", "a=2");         /* (NOT a) = 1 */
	YES("NOT (a = 1)", "a=2");
	YES("Not (A = 1) aNd b iS nOt NulL", "A=2;b=1");
	NO("A = 1", "a=1");
	YES("a = 1 = TRUE", "a=1");
	NO("a = 1 = 1", "a=1");
	YES("/* one */ a = 1 -- two\n AND b = 2 /***/", "a=1;b=2");
	YES("$_1 = 1 AND\t_\r= 2\f", "$_1=1;_=2");
}

static void what_follows_is_not_looked_at(void **state)
{
	YES("a = 1 b", "a=1");
	YES("a = 1)", "a=1");
	YES("a = 1 LIKE 'x' ...", "a=1");
	YES("a = 007", "a=0");
	YES("a = 1 -- two", "a=1");
	NO("a-b = 1", "a-b=1");
	YES("a = 1 'x''y AND b", "a=1"); /* 'x' is the next word, the second quote begins what is not looked at */
	REFUSED("a = 'x''y AND b", "character 8: the text");
	REFUSED("a = 1 ; b", "character 7: ';' has no meaning");
	REFUSED("a = 1 'b", "character 7: the text");
}

static void a_refusal_names_place_and_reason(void **state)
{
	REFUSED("", "character 1: the expression ends; want a property");
	REFUSED("a =", "character 4: the expression ends");
	REFUSED("a = = 1", "character 5: '=': want a property");
	REFUSED("a = 1 AND", "character 10: the expression ends");
	REFUSED("(a = 1", "character 7: the expression ends; want ')'");
	REFUSED("a != 1", "character 3: '!' has no meaning here; <> would be right");
	REFUSED("a = \"x\"", "single quotes");
	REFUSED("标 = 1", "character 1: '标'");
	REFUSED("a = '标签' AND ~", "character 14: '~'");
	REFUSED("a > 'x'", "character 5: this has no order");
	REFUSED("'x' > a", "character 1: this has no order");
	REFUSED("a > TRUE", "no order");
	REFUSED("a > NULL", "no order");
	REFUSED("a > 1 > 2", "no order");
	REFUSED("NOT a > 1", "no order");
	REFUSED("a BETWEEN 'a' AND 'b'", "no order");
	REFUSED("a BETWEEN 3 AND 1", "character 11: BETWEEN");
	REFUSED("a BETWEEN 3 AND 1.5", "BETWEEN");
	REFUSED("a BETWEEN 3", "AND, of BETWEEN");
	REFUSED("a = NULL", "IS NULL");
	REFUSED("NULL = a", "IS NULL");
	REFUSED("TRUE = 'x'", "never equal");
	REFUSED("a IS 1", "NULL or NOT NULL");
	REFUSED("a IS NOT 1", "want NULL");
	REFUSED("a IN ()", "want a text");
	REFUSED("a IN (1)", "want a text");
	REFUSED("a IN ('x'", "',' or ')'");
	REFUSED("'x' IN ('x')", "IN wants a property");
	REFUSED("a CONTAINS b", "want a text");
	REFUSED("a NOT 1", "after NOT");
	REFUSED("5", "not true or false");
	REFUSED("'x' OR a = 1", "character 1: this is not true or false");
	REFUSED("a = 1 AND 5", "character 11: this is not true or false");
	REFUSED("-a", "not true or false");
	REFUSED("a = 9223372036854775808", "at most");
	REFUSED("a = 0.0", "more than 0");
	REFUSED("a = 1E999", "too large");
	REFUSED("a = 1 /* x", "comment");
	REFUSED("* = 1", "'*'");
	assert_true(matches("TRUE = FALSE OR 'x' <> TRUE", ""));
}

static char *times(const char *before, const char *each, int n, const char *behind)
{
	struct buf b = { 0 };

	buf_cstr(&b, before);
	for (int i = 0; i < n; i++)
		buf_cstr(&b, each);
	buf_put(&b, behind, strlen(behind) + 1);
	return b.p;
}

static void expressions_are_bounded(void **state)
{
	char *behind = times("a BETWEEN 1 AND 2", ") BETWEEN 1 AND 2", 40, "");
	struct { char *text; const char *why; } bad[] = {
		{ times("", "(", 100000 / 2, "a"), "levels" },
		{ times("", "NOT ", 1000, "a"), "levels" },
		{ times("", "-", 10000, "5 = 5"), "levels" },
		{ times("a = 1", " OR a = 1", 5000, ""), "literals" },
		{ times("a=b", " OR a=b", 8000, ""), "steps" },
		{ times("a IN ('x'", ",'x'", 5000, ")"), "literals" },
		{ times("a = '", "0123456789", 7000, "'"), "at most 65536" },
		/* Each BETWEEN asks for what is on its left twice. */
		{ times("", "-(", 40, behind), "steps" },
	};
	struct buf names = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		REFUSED(bad[i].text, bad[i].why);
		free(bad[i].text);
	}
	free(behind);
	for (int i = 0; i < 257; i++)
		buf_printf(&names, "%sa%d = 'x'", i ? " OR " : "", i);
	buf_char(&names, '\0');
	REFUSED(names.p, "names");
	buf_free(&names);
}

static void up_to_the_bounds_they_work(void **state)
{
	char *behind = times("TRUE", ")", 120, ""), *deep = times("", "(a = 'x' AND ", 120, behind);
	char *wide = times("a = 1", " AND a <> 2", 4000, "");
	struct buf names = { 0 };

	YES(deep, "a=x");
	NO(deep, "a=y");
	YES(wide, "a=1");
	for (int i = 0; i < 256; i++)
		buf_printf(&names, "%sa%d = 'x'", i ? " OR " : "", i);
	buf_char(&names, '\0');
	YES(names.p, "b=1;a255=x");
	NO(names.p, "b=1;a256=x");
	free(behind);
	free(deep);
	free(wide);
	buf_free(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_compared_as_numbers),
		cmocka_unit_test(a_text_that_is_no_such_number_fails_the_whole),
		cmocka_unit_test(texts_are_equal_or_not),
		cmocka_unit_test(an_empty_value_is_no_property),
		cmocka_unit_test(the_last_of_two_properties_counts),
		cmocka_unit_test(null_is_neither_true_nor_false),
		cmocka_unit_test(between_takes_both_ends),
		cmocka_unit_test(in_looks_for_texts),
		cmocka_unit_test(parts_of_texts),
		cmocka_unit_test(words_bind_as_in_the_grammar),
		cmocka_unit_test(what_follows_is_not_looked_at),
		cmocka_unit_test(a_refusal_names_place_and_reason),
		cmocka_unit_test(expressions_are_bounded),
		cmocka_unit_test(up_to_the_bounds_they_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
