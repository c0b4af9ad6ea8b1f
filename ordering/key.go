package ordering

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdall/holdall/internal/next"
)

// Limits of a key. DynamoDB's own limit for a hash key is 2,048 bytes.
const (
	maxKeyBytes = 1024
	maxSegments = 16
)

// Key names a lockable record: one or more segments joined by "/", outermost
// first, such as "customer:42/address:7". A lock on a key covers everything
// below it.
//
// Inside a segment, "%" is written "%25" and "/" is written "%2F"; any other
// "%" is an error. Bytes are compared as they are: there is no Unicode
// normalisation, so two spellings of one accented letter are two keys.
//
// The first segment names the thing that may be locked as one: "customer:42",
// not "customer". Every fine lock writes its ancestors' rows, so a first
// segment that everybody shares is a hot row.
//
// Build keys with [Join], which escapes; a Key made by conversion is checked
// by [Key.Validate], which everything that takes keys calls.
type Key string

// KeyError says why a key cannot name a record. The call must be fixed.
type KeyError struct {
	Key    Key
	Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("key %q: %s", string(e.Key), e.Reason) }

var escaper = strings.NewReplacer("%", "%25", "/", "%2F")

// Join builds a key from unescaped segments, outermost first.
// It does not fail: an impossible key, such as one with an empty segment, is
// refused by [Key.Validate] and so by everything that takes it.
func Join(segments ...string) Key {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		escaped[i] = escaper.Replace(s)
	}
	return Key(strings.Join(escaped, "/"))
}

// WhatNext is for lockset.NextOf.
func (e *KeyError) WhatNext() next.Next { return next.FixCall }

// Segments returns the unescaped segments of a valid key, outermost first.
func (k Key) Segments() []string {
	segments := strings.Split(string(k), "/")
	for i, s := range segments {
		segments[i] = strings.NewReplacer("%2F", "/", "%25", "%").Replace(s)
	}
	return segments
}

// Validate returns nil, or a *KeyError that says what is wrong with the key.
func (k Key) Validate() error {
	switch {
	case k == "":
		return &KeyError{k, "is empty"}
	case len(k) > maxKeyBytes:
		return &KeyError{k, fmt.Sprintf("has %d bytes, the limit is %d", len(k), maxKeyBytes)}
	case !utf8.ValidString(string(k)):
		return &KeyError{k, "is not valid UTF-8"}
	}
	segments := 0
	for segment := range strings.SplitSeq(string(k), "/") {
		segments++
		if segment == "" {
			return &KeyError{k, fmt.Sprintf("segment %d is empty", segments)}
		}
		if err := checkEscapes(k, segment); err != nil {
			return err
		}
	}
	if segments > maxSegments {
		return &KeyError{k, fmt.Sprintf("has %d segments, the limit is %d", segments, maxSegments)}
	}
	return nil
}

// checkEscapes refuses every "%" but the two that Join writes: a second
// spelling of one segment would be a second lock on one record.
func checkEscapes(k Key, segment string) error {
	for rest := segment; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			return nil
		}
		rest = rest[i:]
		if !strings.HasPrefix(rest, "%25") && !strings.HasPrefix(rest, "%2F") {
			return &KeyError{k, fmt.Sprintf("segment %q has a %% that is neither %%25 nor %%2F; build keys with ordering.Join", segment)}
		}
		rest = rest[len("%25"):]
	}
}

// Ancestors returns the keys above k, outermost first: none for a key of one
// segment.
func (k Key) Ancestors() []Key {
	var ancestors []Key
	for i := range len(k) {
		if k[i] == '/' {
			ancestors = append(ancestors, k[:i])
		}
	}
	return ancestors
}

// Root returns the first segment, as a key: the outermost ancestor, or k
// itself.
func (k Key) Root() Key {
	family, _, _ := strings.Cut(string(k), "/")
	return Key(family)
}

// Covers reports whether a lock on k covers other: they are equal, or k is an
// ancestor of other.
func (k Key) Covers(other Key) bool {
	return strings.HasPrefix(string(other), string(k)) &&
		(len(other) == len(k) || other[len(k)] == '/')
}

// Under returns k as it is written relative to its ancestor. It panics if k is not
// below that key.
func (k Key) Under(ancestor Key) string {
	if len(k) <= len(ancestor) || !ancestor.Covers(k) {
		panic(fmt.Sprintf("ordering: Key.Under: %q is not below %q", string(k), string(ancestor)))
	}
	return string(k[len(ancestor)+1:])
}

// Below returns the key that [Key.Under] wrote relative to k.
func (k Key) Below(relative string) Key { return k + "/" + Key(relative) }

// Compare orders keys segment by segment, by the bytes of the escaped form: an
// ancestor comes before everything below it, and its descendants are
// contiguous. It returns a negative number, zero or a positive number.
func Compare(a, b Key) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		// A segment that ends here is a prefix of the other: it comes first.
		switch {
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}
