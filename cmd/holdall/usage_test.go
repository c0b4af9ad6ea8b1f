package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wrong are command lines with what is wrong with them.
var wrong = []struct{ args, says string }{
	{"chekc", `unknown command "chekc"`},
	{"check --colour", "unknown flag: --colour"},
	{"check --table=", "which lock table?"},
	{"check -o yaml", `--output is "yaml"`},
	{"check --lease 1ms", "at least 1s is needed"},
	{"check tables", `unknown command "tables"`},

	{"ls --held --dead", "held"},
	{"ls --watch --dead", "watch"},
	{"ls --watch --every 0s", "--every"},
	{"ls a b", "arg"},
	{"show a//b", "empty"},
	{"show", "arg"},
	{"free a", "--unit is required: holdall show a"},
	{"free a --unit u", "--yes is required"},
	{"sweep --table=", "--table"},
	{"sweep --every 0s", "--every"},
	{"recover", "--units"},
	{"recover --every -1s --units u", "--every"},
	{"mend", "--units"},
	{"mend --units u --keep abc --yes", "name the unit"},
	{"mend --units u u --keep abc", "--yes"},
	{"mend --units u u --keep abc --apply abc --yes", "two choices"},
	{"mend --units u -Mnp_7B3R0ORa0uKMJx-6w", "holdall mend -- UNIT"},
	{"outcome", "give either the Ref of a unit, or --id"},
	{"outcome unit:x --id x", "give either the Ref of a unit, or --id"},
	{"outcome x", "a Ref begins with unit:"},
	{"outcome --id unit:x", "give it without --id"},
	{"version now", `unknown command "now"`},

	{"timeline a.jsonl", `-o is "": give it the name of a file that ends in .html or .json`},
	{"timeline a.jsonl -o json", `-o is "json"`},
	{"timeline -o out.html", "requires at least 1 arg"},

	{"init --table= --print iam", "which lock table"},
	{`init --print terraform --table x"{}`, "is not the name"},
	{"init --print cloudformation --hash-key a:b", "hash-key"},
	{"init --print pulumi", "cloudformation, iam"},
	{"init --print iam --records a!b", `"a!b" is not the name`},
	{"init print", `unknown command "print"`},

	{"web --listen 127.0.0.1", "an address with a port is needed"},
	{"web --every 0s", "--every is more than zero"},
	{"web --capacity -1", "--capacity not less"},
	{"web --metrics http://127.0.0.1:4318/v1/metrics", "cannot be asked for them"},
	{"web --metrics 127.0.0.1:9090", "--metrics: it is no URL"},
	{"web --token-file testdata/token", "a token of 5 bytes, and at least 16"},
	{"web --table=", "which lock table?"},
	{"web a b", "accepts at most 1 arg(s), received 2"},
	{"web --host holdall.example,holdall.example:8765", "without a scheme and a port"},

	{"dynamodb --share 2", "--share is 2: it must be from 0 to 1"},
	{"dynamodb --share NaN", "--share is NaN: it must be from 0 to 1"},
	{"dynamodb --fault late", "--fault needs --share"},
	{"dynamodb --fault typhoon", `there is no "typhoon"; there are: answer-lost, `},
	{"dynamodb --latency -1s", "--latency is -1s"},

	{"cost --keys 0", "--keys is 0"},
	{"cost --depth 17", "--depth is 17: it must be from 1 to 16"},
	{"cost --writes -1", "--writes is -1"},
	{"cost --reads 100001", "--reads is 100001"},
	{"cost --rate NaN", "--rate is NaN"},
	{"cost --rate -1", "--rate is -1"},
	{"cost --in-the-way 10", "--in-the-way is 10: it must be from 0 to 1"},
	{"cost --price-read -1 --price-write 1", "--price-read is -1"},
	{"cost --price-write 1", "--price-write and --price-read"},
	{"cost --record-size 3.5KB", `"3.5KB" for "--record-size"`},
	{"cost --record-size 409601", "--record-size is 409601"},
	{"cost --record-size 0", "--record-size is 0"},
	{"cost --record-size 9007199254740993KB", "--record-size"},
	{"cost --shared 2 --depth 2", "--shared is 2, and --depth 2"},
	{"cost --shared -1", "--shared is -1"},
	{"cost --hold -1s --locked", "--hold is -1s"},
	{"cost --hold 169h --locked", "--hold is 169h"},
	{"cost --hold 20s", "--hold is 20s, and the lease 20s"},
	{"cost --writes 0 --reads 0", "--writes and --reads are 0"},
	{"cost now", `unknown command "now"`},
}

// What is wrong with a command line is said in one line, before anything is asked for or done.
func TestWrongUsage(t *testing.T) {
	for _, c := range wrong {
		r := runWith(t, environ("http://127.0.0.1:1", "HOLDALL_TABLE=locks"), strings.Fields(c.args)...)
		r.oneError(t, exitUsage, c.says)
		require.Empty(t, r.stdout, c.args)
	}
	runWith(t, []string{"HOLDALL_LEASE=long"}, "check", "--table", "locks").oneError(t, exitUsage, "HOLDALL_LEASE")
}
