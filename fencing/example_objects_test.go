package fencing_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdall/holdall/fencing"
)

// ErrChanged is what an object store answers to a conditional write that came too
// late: 412 or 409.
var ErrChanged = errors.New("the object is not what it was")

// Objects is what is asked of an object store. The ETag of an object that is not
// there is empty, and a write with an empty one creates the object or is refused:
// If-None-Match: *. A write with another one has If-Match.
type Objects interface {
	Get(ctx context.Context, name string) (body []byte, etag string, err error)
	Put(ctx context.Context, name string, body []byte, etag string) error
}

// Stamped is an object's content. The token is part of it, and so of its ETag.
type Stamped struct {
	Token fencing.Token
	Body  string
}

// PutObject writes an object under a lock whose token this is.
func PutObject(ctx context.Context, store Objects, name string, token fencing.Token, body string) error {
	content, err := json.Marshal(Stamped{token, body})
	if err != nil {
		return err
	}
	for {
		there, etag, err := store.Get(ctx, name)
		if err != nil {
			return err
		}
		var found Stamped
		if etag != "" {
			if err := json.Unmarshal(there, &found); err != nil {
				return err
			}
		}
		if found.Token > token {
			return &fencing.StaleError{Resource: name, Token: token, Found: found.Token}
		}
		err = store.Put(ctx, name, content, etag) // only over what was just read
		if !errors.Is(err, ErrChanged) || ctx.Err() != nil {
			return err
		}
	}
}

func ExampleToken_objects() {
	ctx := context.Background()
	sleeper, successor := fencing.Token(1_753_000_000_000_001), fencing.Token(1_753_000_000_000_009)
	store := &bucket{objects: map[string][]byte{}}
	fmt.Println(PutObject(ctx, store, "report", 1_752_000_000_000_000, "older"))
	store.between = func() { // the successor writes after the sleeper has looked
		fmt.Println(PutObject(ctx, store, "report", successor, "new"))
	}
	fmt.Println(PutObject(ctx, store, "report", sleeper, "old"))
	// Output:
	// <nil>
	// <nil>
	// report: token is stale: 1753000000000009 was there, ours is 1753000000000001
}

// bucket is an object store in memory. It calls between before its next write.
type bucket struct {
	objects map[string][]byte
	between func()
}

func (b *bucket) Get(_ context.Context, name string) ([]byte, string, error) {
	body, there := b.objects[name]
	if !there {
		return nil, "", nil
	}
	return body, fmt.Sprintf("%x", sha256.Sum256(body)), nil
}

func (b *bucket) Put(ctx context.Context, name string, body []byte, etag string) error {
	if f := b.between; f != nil {
		b.between = nil
		f()
	}
	if _, now, _ := b.Get(ctx, name); now != etag {
		return ErrChanged
	}
	b.objects[name] = body
	return nil
}
