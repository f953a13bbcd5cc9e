package cron

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxJobs bounds the jobs of the mesh, and of each company: lists show all of them.
	MaxJobs = 1_000
	// MaxText bounds the text that a job publishes, in bytes; every firing stores it.
	MaxText = 16 << 10
	// MaxLate bounds how many missed times of one job fire late.
	MaxLate = 25
	// kept is how many firings a job shows, the newest first.
	kept = 20
	// maxZone bounds the name of a time zone, maxSaid what became of a firing, in bytes.
	maxZone = 100
	maxSaid = 200
	// processPrefix begins the name of the process that a job declares.
	processPrefix = "cron."
)

// What happens to the times that passed while nobody could fire them.
const (
	MissedOnce = "once" // they fire once together, late
	MissedAll  = "all"  // each fires late, at most MaxLate of them
)

// What happens if the process of the last time still runs.
const (
	BusySkip    = "skip"    // this time is left out, and says so
	BusyReplace = "replace" // it is ended, and started anew
)

// A Job fires at the times of a schedule.
type Job struct {
	Name      string           `cbor:"1,keyasint" json:"name"`
	Company   ledger.CompanyID `cbor:"2,keyasint,omitempty" json:"-"`
	Cron      string           `cbor:"3,keyasint" json:"cron"`
	Zone      string           `cbor:"4,keyasint" json:"timezone"`
	Missed    string           `cbor:"5,keyasint" json:"missed" enum:"once,all"`
	Busy      string           `cbor:"6,keyasint" json:"busy" enum:"skip,replace"`
	Paused    bool             `cbor:"7,keyasint,omitempty" json:"paused"`
	Topic     string           `cbor:"8,keyasint,omitempty" json:"topic"`
	Text      string           `cbor:"9,keyasint,omitempty" json:"text"`
	JSON      bool             `cbor:"10,keyasint,omitempty" json:"json"` // Text is JSON
	Next      core.Time        `cbor:"11,keyasint,omitempty" json:"nextRunAt"`
	Due       core.Time        `cbor:"12,keyasint,omitempty" json:"-"` // its time in the index of due times
	Fired     int64            `cbor:"13,keyasint,omitempty" json:"fired"`
	Firings   []Firing         `cbor:"14,keyasint,omitempty" json:"firings"` // the newest first
	Problem   core.NullText    `cbor:"15,keyasint,omitempty" json:"problem"` // why it does not fire any more
	By        string           `cbor:"16,keyasint" json:"createdBy"`
	CreatedAt core.Time        `cbor:"17,keyasint" json:"createdAt"`
	UpdatedAt core.Time        `cbor:"18,keyasint" json:"updatedAt"`
	// Process is what it starts; of the mesh alone.
	Process *company.NewProcess `cbor:"19,keyasint,omitempty" json:"-"`
}

// A Firing is one time at which a job fired.
type Firing struct {
	Number int64     `cbor:"1,keyasint" json:"number"`
	Due    core.Time `cbor:"2,keyasint,omitempty" json:"due"` // null: by request
	At     core.Time `cbor:"3,keyasint" json:"at"`
	Height uint64    `cbor:"4,keyasint" json:"height"`
	Said   string    `cbor:"5,keyasint" json:"result"`
	OK     bool      `cbor:"6,keyasint,omitempty" json:"ok"`
}

// Clone returns a copy that shares no memory with j, as the ledger's cache of decoded rows
// needs it.
func (j Job) Clone() Job {
	j.Firings = slices.Clone(j.Firings)
	if j.Process != nil {
		p := j.Process.Clone()
		j.Process = &p
	}
	return j
}

// Keys, of a company or of the mesh:
//
//	cron/<name>                            the job
//	(mesh) cron-due/<time>/<company>.<name>   company; jobs that will fire
var (
	ofCompanies = ledger.NewTable[string, Job]("cron")
	ofMesh      = ledger.NewMeshTable[string, Job]("cron")
)

func dueKey(j Job) []byte {
	return ledger.Key("cron-due", ledger.Order(uint64(j.Due)), string(j.Company)+"."+j.Name)
}

// Of returns a job of a company, or of the mesh for "".
func Of(tx *ledger.Tx, of ledger.CompanyID, name string) (Job, bool) {
	if strings.Contains(name, "/") {
		return Job{}, false
	}
	if of == "" {
		return ofMesh.Get(tx, name)
	}
	return ofCompanies.Get(tx, of, name)
}

// List returns the jobs of a company, or of the mesh for "", by name.
func List(tx *ledger.Tx, of ledger.CompanyID) []Job {
	out := []Job{}
	all := ofMesh.All(tx)
	if of != "" {
		all = ofCompanies.All(tx, of)
	}
	for _, j := range all {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b Job) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Due returns up to limit jobs that are due at now, the earliest first.
func Due(tx *ledger.Tx, now core.Time, limit int) (out []Job) {
	prefix := ledger.Key("cron-due", "")
	for k, v := range tx.Scan(prefix, ledger.Key("cron-due", ledger.Order(uint64(now)+1)), false) {
		if len(out) == limit {
			break
		}
		_, name, _ := strings.Cut(string(k[len(prefix):]), "/")
		if j, ok := Of(tx, ledger.CompanyID(v), strings.TrimPrefix(name, string(v)+".")); ok {
			out = append(out, j)
		}
	}
	return out
}

// put writes a job, and its time into the index while it can fire.
func put(tx *ledger.Tx, was, j Job) Job {
	j.Due = 0
	if !j.Paused {
		j.Due = j.Next
	}
	if was.Due != j.Due {
		if was.Due != 0 {
			tx.Delete(dueKey(was))
		}
		if j.Due != 0 {
			tx.Set(dueKey(j), []byte(j.Company))
		}
	}
	if j.Company == "" {
		ofMesh.Put(tx, j.Name, j)
	} else {
		ofCompanies.Put(tx, j.Company, j.Name, j)
	}
	return j
}

func drop(tx *ledger.Tx, j Job) {
	if j.Due != 0 {
		tx.Delete(dueKey(j))
	}
	if j.Company == "" {
		ofMesh.Delete(tx, j.Name)
	} else {
		ofCompanies.Delete(tx, j.Company, j.Name)
	}
}

var nameSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,58}$`)
