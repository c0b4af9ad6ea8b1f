package locks

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdall/holdall/internal/lockrow"
	"github.com/holdall/holdall/internal/next"
	"github.com/holdall/holdall/trace"
)

// Limits of a configuration.
const (
	MinLease     = time.Second
	MaxRetention = 10 * 365 * 24 * time.Hour
	MaxChunkSize = 99
)

// Config is lockset.Config, field by field: see there.
type Config struct {
	Table          string
	HashKey        string
	Owner          string
	Lease          time.Duration
	Heartbeat      time.Duration
	Margin         time.Duration
	AttemptTimeout time.Duration
	Poll           time.Duration
	Grace          time.Duration
	MaxAge         time.Duration
	Retention      time.Duration
	ChunkSize      int
	Now            func() time.Time
	Rand           func(ctx context.Context) [16]byte
	Logger         *slog.Logger
	Trace          *trace.Trace
}

// ConfigError says which field of a configuration cannot be used.
type ConfigError struct {
	Field, Reason string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("config: %s %s", e.Field, e.Reason) }

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.HashKey == "" {
		c.HashKey = "key"
	}
	if c.Owner == "" {
		c.Owner = defaultOwner()
	}
	orDuration := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	orDuration(&c.Lease, 20*time.Second)
	orDuration(&c.Heartbeat, c.Lease/3)
	orDuration(&c.Margin, c.Lease/10)
	orDuration(&c.AttemptTimeout, c.Lease/10)
	orDuration(&c.Poll, c.Lease/50)
	orDuration(&c.Grace, c.Lease/4)
	orDuration(&c.MaxAge, 7*24*time.Hour)
	orDuration(&c.Retention, 14*24*time.Hour)
	if c.ChunkSize == 0 {
		c.ChunkSize = 24
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = random
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Trace == nil {
		c.Trace = &trace.Trace{}
	}
	return c
}

// longestAttempt returns how long one sending may take without putting a lease at risk: of two, one
// may be lost.
func (c Config) longestAttempt() time.Duration { return (c.Lease - c.Heartbeat - c.Margin) / 2 }

// WhatNext is for lockset.NextOf.
func (e *ConfigError) WhatNext() next.Next { return next.FixCall }

// validate returns a *ConfigError for the first field that cannot be used.
func (c Config) validate() error {
	taken := []string{
		lockrow.AttrOwner, lockrow.AttrLease, lockrow.AttrRVN, lockrow.AttrReleased, lockrow.AttrUnit, lockrow.AttrFence, lockrow.AttrPrepared,
		lockrow.AttrCommittedBy, lockrow.AttrBelow, lockrow.AttrPendingBelow, lockrow.AttrQueue, lockrow.AttrExpires,
		lockrow.AttrSilentOf, lockrow.AttrSilentFor, lockrow.AttrTakenFrom, lockrow.AttrPurpose, "acquiredAt", "data",
	}
	for _, check := range []struct {
		wrong         bool
		field, reason string
	}{
		{c.Table == "", "Table", "is required"},
		{slices.Contains(taken, c.HashKey), "HashKey", fmt.Sprintf("%q is the name of another attribute of a lock row", c.HashKey)},
		{strings.Contains(c.HashKey, `"`), "HashKey", fmt.Sprintf("%q has a quotation mark", c.HashKey)},
		{c.Lease < MinLease, "Lease", fmt.Sprintf("is %v, at least %v is needed", c.Lease, MinLease)},
		{c.Heartbeat <= 0, "Heartbeat", "is negative"},
		{c.Margin <= 0, "Margin", "is negative"},
		{c.AttemptTimeout <= 0, "AttemptTimeout", "is negative"},
		{c.Poll <= 0, "Poll", "is negative"},
		{c.Retention > MaxRetention, "Retention", fmt.Sprintf("is %v, longer than %v", c.Retention, MaxRetention)},
		{c.MaxAge < c.Lease, "MaxAge", fmt.Sprintf("is %v, shorter than a lease", c.MaxAge)},
		{c.MaxAge >= c.Retention, "MaxAge", fmt.Sprintf("is %v, it must stay below Retention, %v", c.MaxAge, c.Retention)},
		{max(c.Heartbeat, c.AttemptTimeout, c.Margin) > c.Lease, "Lease", fmt.Sprintf(
			"is %v, shorter than a heartbeat of %v, an attempt of %v or a margin of %v", c.Lease, c.Heartbeat, c.AttemptTimeout, c.Margin)},
		{c.Poll > c.Lease, "Poll", "is longer than a lease"},
		{c.Grace < maxSlowdown*c.Poll, "Grace", fmt.Sprintf(
			"is %v, less than %d times Poll, %v: the living could not keep their turn", c.Grace, maxSlowdown, c.Poll)},
		{c.Heartbeat+2*c.AttemptTimeout+c.Margin > c.Lease, "Lease", fmt.Sprintf(
			"is %v, too short for a heartbeat of %v, two attempts of %v and a margin of %v", c.Lease, c.Heartbeat, c.AttemptTimeout, c.Margin)},
		{c.ChunkSize < 1 || c.ChunkSize > MaxChunkSize, "ChunkSize", fmt.Sprintf("is %d, not between 1 and %d", c.ChunkSize, MaxChunkSize)},
	} {
		if check.wrong {
			return &ConfigError{check.field, check.reason}
		}
	}
	return nil
}

func random(context.Context) (bytes [16]byte) {
	_, _ = rand.Read(bytes[:]) // never fails: it ends the program instead
	return bytes
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return host + " " + uuid.NewString()
}
