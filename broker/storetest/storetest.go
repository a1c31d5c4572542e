// Package storetest is the contract of broker.Store as tests: [Run] and [RunReal]
// hold a store to each clause of it, [Linearizable] holds concurrent calls to some
// order of them, and [Same] compares two stores under random sequences of calls.
//
// Where the contract leaves a choice, the suite decides as follows. Comparisons of
// moments are strict: a look has begun after a mark when its Begin is greater than
// Since. A room fits below Hard and Soft when the load after the claim is not greater.
// The pool's clock starts near the wall clock's milliseconds, so that what is
// remembered of a former term lies before it and is never taken for [broker.Never].
// The first plan of a term has version 1, each further one the next. Lists without a stated order are compared
// as sets.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// StepCap is the most by which one step may advance the pool's clock in a store that
// is handed to the suite: open it with this cap.
const StepCap = 10 * time.Second

// Subject is a store under test and what the suite may do to the world around it.
// Every Subject is an empty pool of its own.
type Subject struct {
	// Store has no term yet.
	Store broker.Store
	// Advance moves the store's wall clock, back when d is negative; the clock stands
	// still otherwise. nil when it cannot be controlled (a real server): Run needs it,
	// RunReal leaves out what needs it.
	Advance func(d time.Duration)
	// Lose makes the store lose everything, as FLUSHALL does. nil leaves its cases out.
	Lose func()
	// Copy remembers the store's content; what it returns brings that content back as
	// an older copy with another history does: State is then ErrStoreLost until Begin.
	// nil leaves its cases out.
	Copy func() (restore func())
}

// Opener opens a store. What it opens it closes with t.Cleanup.
type Opener func(t *testing.T) Subject

// Run holds a store with a controlled clock to the whole contract.
func Run(t *testing.T, open Opener) {
	t.Helper()
	run(t, open, true)
}

// RunReal holds a store on a real server to all of the contract that can be seen
// without control of its clock.
func RunReal(t *testing.T, open Opener) {
	t.Helper()
	run(t, open, false)
}

// clause is one sentence of the contract.
type clause struct {
	says string
	need need
	test func(t *testing.T, k *kit)
}

// need is what a clause needs of a Subject besides the store.
type need int

const (
	nothing need = iota
	aClock       // Advance
	aLoss        // Lose
	aCopy        // Copy
)

func run(t *testing.T, open Opener, clock bool) {
	for _, part := range []struct {
		name    string
		clauses []clause
	}{
		{"Clock", clockClauses()},
		{"Term", termClauses()},
		{"Assert", assertClauses()},
		{"Claim", claimClauses()},
		{"Capacity", capacityClauses()},
		{"Pin", pinClauses()},
		{"End", endClauses()},
		{"Adopt", adoptClauses()},
		{"Record", recordClauses()},
		{"Life", lifeClauses()},
		{"Mark", markClauses()},
		{"Facts", factsClauses()},
		{"Plan", planClauses()},
		{"Guard", guardClauses()},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, c := range part.clauses {
				t.Run(c.says, func(t *testing.T) {
					if c.need == aClock && !clock {
						t.Skip("needs control of the store's clock")
					}
					s := open(t)
					switch {
					case clock && s.Advance == nil:
						t.Fatal("Run needs a Subject with Advance; use RunReal for one without")
					case c.need == aLoss && s.Lose == nil, c.need == aCopy && s.Copy == nil:
						t.Skip("the subject cannot lose its content")
					}
					c.test(t, &kit{Subject: s, t: t, ctx: t.Context()})
				})
			}
		})
	}
}

// kit is a Subject with the words the clauses are written in. Its methods fail the
// test when the store answers an error that was not asked for.
type kit struct {
	Subject
	t    *testing.T
	ctx  context.Context
	term broker.Term
}

func (k *kit) noError(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s: got %v, want no error", what, err)
	}
}

func (k *kit) wantError(what string, got, want error) {
	k.t.Helper()
	if !errors.Is(got, want) {
		k.t.Fatalf("%s: got error %v, want %v", what, got, want)
	}
}
