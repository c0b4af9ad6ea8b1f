package fencing_test

import (
	"fmt"
	"time"

	"github.com/holdall/holdall/fencing"
	"github.com/holdall/holdall/internal/tokens"
)

// shelf is a store that is not DynamoDB. It refuses whoever has been overtaken:
// it keeps the highest token that has written.
type shelf struct {
	token fencing.Token
	box   string
}

func (s *shelf) put(token fencing.Token, box string) error {
	if token < s.token { // the same unit may write again
		return fmt.Errorf("token %v is stale: %v has been here", token, s.token)
	}
	s.token, s.box = token, box
	return nil
}

// A holder that slept through its lease does not know that another has taken
// over. The store does.
func ExampleToken() {
	var s shelf
	sleeper, successor := fencing.Token(1_753_000_000_000_001), fencing.Token(1_753_000_000_000_009)
	fmt.Println(s.put(successor, "new"))
	fmt.Println(s.put(sleeper, "old"))
	fmt.Println(s.box)
	// Output:
	// <nil>
	// token 1753000000000001 is stale: 1753000000000009 has been here
	// new
}

// A clock that is behind proposes tokens above what it has seen, all the same.
func ExampleClock() {
	slow := tokens.NewClock(func() time.Time { return time.UnixMicro(1_000) })
	fmt.Println(slow.Next())
	slow.Saw(5_000) // in an answer of the table's
	fmt.Println(slow.Next())
	// Output:
	// 1000
	// 5001
}
