package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

func TestInitMakesWhatCheckAsksFor(t *testing.T) {
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		tables := []string{"--table", e.Table("l"), "--units", e.Table("u"), "--hash-key", "id"}
		run := func(command ...string) ran { return runWith(t, environ(e.Endpoint), append(command, tables...)...) }
		first := run("init", "--unprotected", "-o", "json")
		e.DropLater(t, e.Table("l"))
		e.DropLater(t, e.Table("u"))
		var did struct{ Tables []made }
		first.json(t, exitDone, &did)
		require.Equal(t, []made{
			{Table: e.Table("l"), Made: true, TTL: "expiresAt", DeletionProtection: notAsked},
			{Table: e.Table("u"), Made: true, TTL: "expiresAt", DeletionProtection: notAsked, PointInTime: notAsked},
		}, did.Tables)
		require.Equal(t, ran{0, unprotected(e.Table("l"), e.Table("u")), ""}, run("check"))
	})
}

func TestInitRefusesATableWithOtherKeys(t *testing.T) {
	e := engines.Dynoxide(t)
	table := e.CreateTable(t, "other", "somethingElse", "")
	r := runWith(t, environ(e.Endpoint), "init", "--table", table)
	r.oneError(t, exitError, "another key schema")
	is, err := e.Client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	require.NoError(t, err)
	require.Equal(t, types.TableStatusActive, is.Table.TableStatus)
	require.False(t, is.Table.DeletionProtectionEnabled != nil && *is.Table.DeletionProtectionEnabled)
}
