package journal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdall/holdall/internal/journal"
	"github.com/holdall/holdall/internal/requests"
)

// Errors about the keys of tables know a unit table by the keys that are written.
func TestTheKeysOfAUnitTable(t *testing.T) {
	require.Equal(t, journal.AttrUnit, requests.UnitHash)
	require.Equal(t, journal.AttrPart, requests.UnitRange)
}
