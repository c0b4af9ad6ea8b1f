package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/integration/engines"
)

// unprotected is what there is to say of tables as the library makes them.
func unprotected(tables ...string) (text string) {
	for _, table := range tables {
		text += "advice: table \"" + table + "\": is not protected from deletion, of which there would be no sign: turn deletion protection on: holdall init does\n"
	}
	return text
}

func TestCheckSaysWhatToDo(t *testing.T) {
	engines.Each(t, func(t *testing.T, e *engines.Engine) {
		b := newBed(t, e)
		require.Equal(t, ran{0, unprotected(b.locks, b.units), ""}, b.run(t, "check"))

		_, err := b.Client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
			TableName: &b.units, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("expiresAt"), Enabled: aws.Bool(false)},
		})
		require.NoError(t, err)
		r := b.run(t, "check")
		require.Equal(t, exitFound, r.code)
		require.Equal(t, "table \""+b.units+"\": TTL is off, so nothing is deleted that is of no use any more: turn TTL on for the attribute \"expiresAt\"\n"+
			unprotected(b.locks, b.units), r.stdout)
		require.Empty(t, r.stderr)

		wrong := b.CreateTable(t, "wrong", "id", "")
		var is struct {
			OK       bool
			Findings []finding
		}
		b.run(t, "check", "-o", "json", "--table", wrong).json(t, exitFound, &is)
		require.False(t, is.OK)
		require.Len(t, is.Findings, 4)
		require.Equal(t, wrong, is.Findings[0].Table)
		require.Contains(t, is.Findings[0].Problem, `its keys are "id"`)
		require.NotEmpty(t, is.Findings[0].Do)

		// No table at all: the rows that cannot be read are no error besides.
		r = b.run(t, "check", "--fleet", "--table", "none", "--units", "")
		require.Equal(t, ran{exitFound, "table \"none\": does not exist: create it, or correct its name, the Region or the account\n", ""}, r)
	})
}

func TestCheckWithoutARegionOrAProfile(t *testing.T) {
	t.Parallel()
	e := engines.Dynoxide(t)
	r := runWith(t, slices.DeleteFunc(environ(e.Endpoint), func(v string) bool { return strings.HasPrefix(v, "AWS_REGION=") }), "check", "--table", "locks")
	r.oneError(t, exitUsage, "--region")
	r = runWith(t, environ(e.Endpoint), "check", "--table", "locks", "--profile", "nobody")
	r.oneError(t, exitError, "nobody")
}
