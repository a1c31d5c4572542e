package broker

import (
	"context"
	"math"
	"slices"
	"time"
)

// Term is one life of a store: a nonce that is made when the store is found empty
// or with another history. Whoever writes says for which term it is meant.
type Term string

// Phase says whether the directory can be trusted.
type Phase string

// The phases of a term.
const (
	Rebuilding Phase = "rebuilding"
	Ready      Phase = "ready"
)

// StoreState is a store's present term and time.
type StoreState struct {
	Term  Term
	Phase Phase
	Now   PoolTime
	// Gap is the last moment at which the pool's clock was held back, because more
	// time had passed than one step may count; Never if it was not in this term.
	// What was observed before it says nothing of the time between.
	Gap PoolTime
	// Floor is the least number the first plan of this term may have.
	Floor int
}

// Store remembers the directory, the marks and the plan of one pool.
//
// Each method is one atomic step: concurrent calls, through any number of processes,
// have the effect of some order of them. A store holds no lock across I/O and keeps
// no state of its own besides connections.
//
// Every step first advances the pool's clock: now += min(wall - last wall, two
// sweeps), never backwards. A step that was capped sets StoreState.Gap to the now it
// ends at. A new clock starts at the wall clock. Many small steps lose no time.
//
// Besides the errors that a method names:
//
//   - A method that takes a term returns ErrStoreLost or ErrTerm, and changes nothing,
//     when that term is not the store's present one.
//   - One that takes a term and an instance returns ErrInstanceNotFound when the
//     instance is not known.
//   - ErrStoreUnavailable says that no answer came: the effect is unknown.
type Store interface {
	// State returns the present term, phase and time. ErrStoreLost when there is no term.
	State(ctx context.Context) (StoreState, error)

	// Begin starts a new term in phase Rebuilding if the store has none or one of another
	// history; otherwise it only returns the state. A new term voids plan and demand and
	// throws nothing else away: pins, marks, seals and instances that an older copy still
	// holds stay, all unanswered.
	Begin(ctx context.Context) (StoreState, error)

	// Assert tells a new term what a broker remembers of the one before. However often it
	// is called, and by however many brokers, what the store holds stands, with two
	// exceptions: of a mark's two remaining times the longer counts, and of two floors the
	// greater. Marks and loss of another incarnation than the recorded one are left out.
	//
	// An instance that was not known becomes known. The floor rises to at least one more
	// than the highest ordinal of a known instance without a seal.
	Assert(ctx context.Context, term Term, a Assertion) error

	// Finish ends Rebuilding if every known instance has answered in this term or is lost,
	// and none has become known within hold; the floor then rises as with Assert. It
	// returns the state after the step.
	Finish(ctx context.Context, term Term, hold time.Duration) (StoreState, error)

	// Claim returns the room's pin if it has one (fresh false, whatever its settings).
	// Otherwise it binds the room to a candidate and counts its reservation. Without a
	// candidate that fits: ErrNoCapacity, and the room is remembered as demand for
	// DemandTTL. In phase Rebuilding a room without a pin gets ErrRebuilding.
	Claim(ctx context.Context, term Term, r ClaimRequest) (pin Pin, fresh bool, err error)

	// Confirm makes the pin of exactly this epoch live. A live one stays as it is.
	// ErrStale when there is no such pin.
	Confirm(ctx context.Context, term Term, room string, epoch Epoch) (Pin, error)

	// Lookup returns the room's pin; with touch it sets LastSeen. It needs no term: a store
	// that is being rebuilt answers what it knows. For a room without a pin it returns
	// ErrRoomNotFound with the state, but ErrStoreLost where the store has no valid term,
	// because not knowing is not "not found".
	Lookup(ctx context.Context, room string, touch bool) (Pin, StoreState, error)

	// End removes a pin if the condition of r's cause holds, leaves a tombstone, and
	// returns what it removed. ErrRoomNotFound when there is no pin, ErrStale when the
	// condition does not hold.
	End(ctx context.Context, term Term, r EndRequest) (Pin, error)

	// Pins lists pins in order of room name: those after the name `after`, at most limit
	// (0 = all), of one instance ("" = all; none of one that is not known).
	Pins(ctx context.Context, instance, after string, limit int) ([]Pin, error)

	// Tombstones returns the rooms that ended on an instance within TombstoneTTL. It
	// also forgets older ones.
	Tombstones(ctx context.Context, instance string) ([]Tombstone, error)

	// Adopt enters rooms that were seen on an instance, and says what became of each, in
	// the order asked. The first of these that applies counts:
	//
	//   - Known: the pin of this epoch is on this instance
	//   - Contradict: a pin of this epoch is elsewhere, or one of a later epoch anywhere
	//   - Ended: there is a tombstone of this or a later epoch
	//   - Adopted: the room has a pin now, which is live and reserves Expected; a pin of
	//     an earlier epoch has ended with CauseGone
	//
	// The epoch counter rises to what was seen. ErrStale, for all rooms, when the
	// incarnation is not the instance's.
	Adopt(ctx context.Context, term Term, instance, incarnation string, rooms []Adoption) ([]AdoptResult, error)

	// Record stores the outcome of a look. An instance that was not known becomes known.
	//
	// Of two good looks the one with the later begin wins; one with the recorded begin is
	// the same look told again, and replaces it. A failed look replaces no facts, it only
	// counts; one that began before the last good look is ignored.
	//
	// A good look whose incarnation is not the recorded one is ErrStale. Where none is
	// recorded yet it is taken, with the marks that are there.
	//
	// A good look sets EmptySince to its Begin, or leaves it as it was set before, when it
	// says Vacant, began after every mark was set, and there is no pin; otherwise
	// EmptySince becomes Never. A pin that is made makes it Never too.
	// After the first good look only a good one changes the address: where an instance was not found, none of its rooms can be made.
	Record(ctx context.Context, term Term, r LookReport) (Instance, error)

	// Rebirth replaces an instance's incarnation by a new one. The pins of the old one end
	// and are returned, its marks and EmptySince go, a seal stays, Lost ends. ErrStale when
	// `from` is not the recorded incarnation.
	Rebirth(ctx context.Context, term Term, instance, from, to string) ([]Pin, error)

	// Mark sets or repeats an owner's mark; only the first call sets Since and Grace. Once
	// it has returned, no claim lands on the instance while a mark is there (G2).
	Mark(ctx context.Context, term Term, instance string, m MarkRequest) (Instance, error)

	// Unmark removes an owner's mark; that there is none is no error. ErrReleased when the
	// instance is released.
	Unmark(ctx context.Context, term Term, instance string, owner Owner) (Instance, error)

	// Lost fences an incarnation: it is no candidate any more, and its pins end and are
	// returned. Repeated, it returns none. An instance that Assert has made lost keeps its
	// pins until this call. ErrStale when the instance is of another incarnation.
	Lost(ctx context.Context, term Term, instance, incarnation string) ([]Pin, error)

	// Forget removes an instance that has no pin and is lost, has a seal, or was never
	// seen (LookBegin Never); otherwise ErrStale. That no finder lists it and nobody
	// answers there is for the caller to know.
	Forget(ctx context.Context, term Term, instance string) error

	// Facts returns all there is but the pins. ErrStoreLost when there is no term.
	Facts(ctx context.Context) (Facts, error)

	// PutPlan stores a scaling decision if the plan has version IfVersion (0 = none in
	// this term), else ErrVersion. In phase Rebuilding it returns ErrRebuilding.
	//
	// A number below the plan's (below Floor for the first plan of a term) takes away every
	// known instance with an ordinal at or above it that is neither lost nor released. All
	// of these are released in the same step, if each of them
	//
	//   - is named in Seal (else it is refused as "missing"),
	//   - with its incarnation ("incarnation"),
	//   - has the scaler's mark, or no look and no incarnation are recorded ("mark"),
	//   - and has no pin, or is named as Occupied ("pins").
	//
	// Otherwise *SealError, and nothing is changed. Its refusals are by ordinal, then name,
	// each with the first reason that applies. A first plan below Floor is also refused, as
	// "floor", if an ordinal from Desired to Floor-1 is no known instance's.
	//
	// With a number that is not lower, the instances at or above it that are named in Seal
	// are released, under the same conditions. Unseal takes seals off instances below
	// Desired.
	PutPlan(ctx context.Context, term Term, u PlanUpdate) (Plan, error)
}

// Lifetimes in a store, on the pool's clock.
const (
	// TombstoneTTL is how long an ended room stays ended against a late look.
	TombstoneTTL = 10 * time.Minute
	// DemandTTL is how long a refused room counts as demand.
	DemandTTL = 30 * time.Second
)

// Pick says how Claim chooses among candidates.
type Pick string

// The ways to pick.
const (
	PickLeast Pick = "least" // the least load; the earlier of equals
	PickFirst Pick = "first" // the first that stays within Soft, else as PickLeast
)

// Candidate is an instance that a claim may land on. The step checks that it is
// still of this incarnation, without mark, seal or loss, below Hard after the claim, and of an
// ordinal that no plan that may still be served takes away.
type Candidate struct {
	Instance    string
	Incarnation string
}

// ClaimRequest asks for a home for a room.
type ClaimRequest struct {
	Room       string
	Expected   int // participants; counts as reservation at once
	Settings   string
	Labels     map[string]string
	Pick       Pick
	Soft       int         // load up to which PickFirst fills; 0 = no limit
	Hard       int         // load that is never exceeded; 0 = no limit
	Candidates []Candidate // in order of preference
}

// Cause says why a pin ends.
type Cause string

// The causes, each with the condition that End checks besides the epoch.
const (
	CauseRefused  Cause = "refused"  // the instance refused the create: state is creating
	CauseTeardown Cause = "teardown" // the application's word: none (Epoch 0 = any)
	CauseGone     Cause = "gone"     // not there in a look: Since is before Begin
	CauseExpired  Cause = "expired"  // nobody in it: live, and LastSeen longer ago than TTL
	CauseLost     Cause = "lost"     // its incarnation is lost (set by Store.Lost)
	CauseReborn   Cause = "reborn"   // its incarnation is over (set by Store.Rebirth)
)

// EndRequest asks for the end of a pin.
type EndRequest struct {
	Room  string
	Epoch Epoch
	Cause Cause
	Begin PoolTime      // of the look, for CauseGone
	TTL   time.Duration // for CauseExpired
}

// Tombstone is a room that has ended: if a look finds it, it is to be destroyed.
type Tombstone struct {
	Room  string
	Epoch Epoch
	Cause Cause
	Ended PoolTime
}

// Adoption is a room of ours that was seen on an instance.
type Adoption struct {
	Room     string
	Epoch    Epoch
	Expected int
	Settings string
	Labels   map[string]string
}

// AdoptOutcome says what Adopt did with a room.
type AdoptOutcome string

// The outcomes of Adopt.
const (
	Adopted    AdoptOutcome = "adopted"    // it has a pin now (it replaced one of an earlier epoch, if any)
	Known      AdoptOutcome = "known"      // exactly this pin was there
	Ended      AdoptOutcome = "ended"      // a tombstone of this or a later epoch
	Contradict AdoptOutcome = "contradict" // a pin of this epoch elsewhere, or of a later one
)

// AdoptResult is the outcome for one room, in the order asked.
type AdoptResult struct {
	Room    string
	Epoch   Epoch
	Outcome AdoptOutcome
	Pin     Pin // that stands, for Adopted, Known and Contradict
}

// Reservation is what is left to be reckoned with of a pin's expected participants.
type Reservation struct {
	Room  string
	Epoch Epoch
	Left  int
}

// LookReport is the outcome of one look at one instance.
type LookReport struct {
	Instance string
	Ordinal  int
	Address  string
	Listed   bool     // by the reporting broker's finder, now
	Begin    PoolTime // when the look began

	// Fault is set for a failed look; all below but Advice and Answered is ignored then.
	Fault  Fault
	Advice string

	Incarnation  string
	Sessions     int
	Participants int
	Rooms        int
	StringIDs    bool
	Vacant       bool          // nobody there, in the sense of emptyWhen
	Reserve      []Reservation // pins whose reservation has changed; others stay

	// Answered: the instance's rooms are known in this term (they were listed by this look, or
	// remembered by this broker from an earlier one).
	Answered bool
}

// MarkRequest sets a mark.
type MarkRequest struct {
	Owner  Owner
	Reason string
	Grace  time.Duration // 0 = no deadline
}

// Plan is a stored scaling decision. Body is the scaler's own record, which the store keeps and does not read.
type Plan struct {
	Version   int64
	Desired   int    // with Version 0: the lowest Limit that was asserted
	Target    int    // sessions per instance; 0 = not said
	EmptyWhen string // "sessions" or "rooms"; "" = not said
	Body      []byte
	StoredAt  PoolTime
	// Guards are the lower numbers that may still be served: while the pool's clock is before a guard's Until,
	// ordinals at or above its Below take no room although they are below Desired. Both rise from guard to guard.
	Guards []Guard
}

// Guard keeps ordinals at or above Below from taking rooms until Until.
type Guard struct {
	Below int
	Until PoolTime
}

// Limit returns the first ordinal that may not take a room: a plan that may still be
// served could take it away. Without a plan there is none but what Assert has told.
func (p Plan) Limit(now PoolTime) int {
	if p.Version == 0 && p.Desired == 0 {
		return math.MaxInt
	}
	for _, g := range p.Guards {
		if now < g.Until {
			return min(p.Desired, g.Below)
		}
	}
	return p.Desired
}

// NextGuards returns the guards of the plan that replaces p at now. For a term's first plan, p is
// what Assert has told. A guard that another one outlasts and undercuts is left out.
func (p Plan) NextGuards(desired int, guardFor time.Duration, now PoolTime) (next []Guard) {
	until := now + PoolTime(guardFor.Milliseconds())
	rises := (p.Version > 0 || p.Desired > 0) && desired > p.Desired && guardFor > 0
	for _, g := range p.Guards {
		if now < g.Until && !(rises && g.Below >= p.Desired && g.Until <= until) {
			next = append(next, g)
		}
	}
	if !rises || len(next) > 0 && slices.ContainsFunc(next, func(g Guard) bool { return g.Below <= p.Desired && g.Until >= until }) {
		return next
	}
	i := len(next)
	for i > 0 && next[i-1].Below > p.Desired {
		i--
	}
	return slices.Insert(next, i, Guard{Below: p.Desired, Until: until})
}

// PlanUpdate is a scaling decision to be stored.
type PlanUpdate struct {
	IfVersion int64
	Desired   int
	Target    int
	EmptyWhen string
	Body      []byte
	Seal      []SealRequest
	Unseal    []string // instances whose release is provably off
	// GuardFor: when Desired rises, the number before it stays a guard for so long.
	GuardFor time.Duration
}

// SealRequest names an instance that a lower number takes away.
type SealRequest struct {
	Instance    string
	Incarnation string // "" for one that never answered
	Occupied    bool   // X is over: pins do not hinder
}

// Demand is what was refused for want of capacity within DemandTTL, each room once.
type Demand struct {
	Rooms        int
	Participants int
}

// Facts is everything but the pins, at one moment.
type Facts struct {
	StoreState
	Instances []Instance // by ordinal, then name
	Plan      Plan       // Version 0: none
	Demand    Demand
}

// Assertion is what a broker remembers of the term before.
type Assertion struct {
	Floor int
	// Limit is the lowest number that may still be served or on its way: Plan.Limit as last seen; 0 = not
	// known. The lowest of them counts as the number before the term's first plan: it limits claims until
	// then, and that plan's guard is of it.
	Limit     int
	Instances []AssertedInstance
}

// AssertedInstance is one remembered instance. Marks carry the time they have left
// in Grace and what has passed in Elapsed.
type AssertedInstance struct {
	Name        string
	Ordinal     int
	Address     string
	Incarnation string
	Marks       []AssertedMark
	Released    bool
	Lost        bool
}

// AssertedMark is a remembered mark.
type AssertedMark struct {
	Owner   Owner
	Reason  string
	Grace   time.Duration // whole; 0 = no deadline
	Elapsed time.Duration // of its life, as last seen
}
