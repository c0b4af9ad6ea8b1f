package lockrow

// Mode is how a unit has a row.
type Mode int

const (
	// Exclusive is how a unit has a key: the row, and all below it, is nobody else's.
	Exclusive Mode = iota
	// Intent is how a unit has the rows above a key: it holds something below.
	Intent
	modes
)

// compatible says in which modes two units may have one row at the same time (Gray et
// al., "Granularity of Locks and Degrees of Consistency in a Shared Data Base", 1976).
var compatible = [modes][modes]bool{
	Exclusive: {Exclusive: false, Intent: false},
	Intent:    {Exclusive: false, Intent: true},
}

// Compatible reports whether a unit may have a row in this mode while another has it in
// that.
func (m Mode) Compatible(other Mode) bool { return compatible[m][other] }

// Modes counts units by the mode in which they have a row.
type Modes [modes]int

// Exclude reports whether one of the units counted keeps others from a mode.
func (n Modes) Exclude(wanted Mode) bool {
	for had, units := range n {
		if units > 0 && !wanted.Compatible(Mode(had)) {
			return true
		}
	}
	return false
}

// has counts who has a row, as it shows.
func (r Row) has() (n Modes) {
	if !r.Free() {
		n[Exclusive] = 1
	}
	n[Intent] = len(r.Below)
	return n
}

// forms are the writes to a row that differ by mode.
var forms = [modes]struct {
	takeIf, take       string
	takeFor            string // take, with a purpose
	isNotHeld          string // by the unit
	restampIf, restamp string
}{
	Exclusive: {takeIf, take + forNothing, take + forPurpose, notTheirs, RestampKeyIf, Stamp},
	Intent:    {intendIf, intend, intend, "NOT " + hasMine, restampIntentIf, stampIntent},
}

// values are those of a unit's writes to the row that it wants.
func (w Want) values(vs Values) Values {
	if w.Mode == Intent {
		return vs.With(entryOf(w.Entry, w.Key))
	}
	return vs
}
