package api

import (
	"cmp"
	"net/http"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The routes that most nouns have alike: they read something, or turn a body into one command
// and answer with the row that it stored. Each function completes a row: the method where the
// row names none, the types of body and answer, and the handler. A noun that needs more
// writes its handler by hand.

// Read answers the result of read. A row that names Out keeps it.
func Read[T any](row Route, read func(*ledger.Tx, *Request) (T, error)) Route {
	row.Method = cmp.Or(row.Method, http.MethodGet)
	if row.Out == nil {
		row.Out = *new(T)
	}
	row.Handle = func(rc *Request) (Response, error) {
		return Viewed(rc, func(tx *ledger.Tx) (T, error) { return read(tx, rc) })
	}
	return row
}

// Show answers what show returns for the row that find finds. A row that names Out keeps it.
func Show[At, T any](row Route, find func(*ledger.Tx, *Request) (At, error), show func(*ledger.Tx, At) T) Route {
	row.Method = cmp.Or(row.Method, http.MethodGet)
	if row.Out == nil {
		row.Out = *new(T)
	}
	row.Handle = func(rc *Request) (Response, error) { return Showing(rc, find, show) }
	return row
}

// ShowNow is [Show] of what depends on the time.
func ShowNow[At, T any](row Route, find func(*ledger.Tx, *Request) (At, error),
	show func(*ledger.Tx, At, core.Time) T) Route {
	return Read(row, func(tx *ledger.Tx, rc *Request) (out T, err error) {
		at, err := find(tx, rc)
		if err == nil {
			out = show(tx, at, core.TimeOf(rc.Now()))
		}
		return out, err
	})
}

// List answers what list returns for the company of the path.
func List[T any](row Route, list func(*ledger.Tx, ledger.CompanyID) T) Route {
	return Show(row, CompanyIn, func(tx *ledger.Tx, c entity.Company) T { return list(tx, c.ID) })
}

// Create submits a command of the company of the path, with the payload that is made of the
// body, and answers its value, with 201 where the row names no status.
func Create[Out, In, P any](row Route, kind string, payload func(rc *Request, in In) (P, error)) Route {
	row.Method, row.Status = cmp.Or(row.Method, http.MethodPost), cmp.Or(row.Status, http.StatusCreated)
	return Change[Out](row, kind, newIn, func(rc *Request, _ string, in In) (P, error) { return payload(rc, in) })
}

// newIn is the place of what has no ID yet.
func newIn(rc *Request) (of ledger.CompanyID, id string, err error) {
	of = CompanyID(rc)
	if !IsUUID(of) {
		return of, "", NotFound("Company not found")
	}
	return of, "", nil
}

// Change finds the row of the path, submits a command of its company with the payload that is
// made of its ID and the body, and answers the command's value.
func Change[Out, In, P any](row Route, kind string, find func(*Request) (of ledger.CompanyID, id string, err error),
	payload func(rc *Request, id string, in In) (P, error)) Route {
	row.Method, row.In, row.Out = cmp.Or(row.Method, http.MethodPatch), *new(In), *new(Out)
	row.Handle = func(rc *Request) (Response, error) {
		in, err := Body[In](rc)
		if err != nil {
			return Response{}, err
		}
		of, id, err := find(rc)
		if err != nil {
			return Response{}, err
		}
		p, err := payload(rc, id, in)
		if err != nil {
			return Response{}, err
		}
		v, err := Do[Out](rc, kind, of, p)
		return OK(v), err
	}
	return row
}

// Remove is [Change] without a body.
func Remove[Out, P any](row Route, kind string, find func(*Request) (of ledger.CompanyID, id string, err error),
	payload func(rc *Request, id string) P) Route {
	row.Method, row.Out = cmp.Or(row.Method, http.MethodDelete), *new(Out)
	row.Handle = func(rc *Request) (Response, error) {
		of, id, err := find(rc)
		if err != nil {
			return Response{}, err
		}
		v, err := Do[Out](rc, kind, of, payload(rc, id))
		return OK(v), err
	}
	return row
}

// Tell is [Remove] that answers ok in the place of the command's value.
func Tell[P any](row Route, kind string, find func(*Request) (of ledger.CompanyID, id string, err error),
	payload func(rc *Request, id string) P) Route {
	row.Method, row.Out = cmp.Or(row.Method, http.MethodDelete), Okay{}
	row.Handle = func(rc *Request) (Response, error) {
		of, id, err := find(rc)
		if err != nil {
			return Response{}, err
		}
		_, err = rc.Submit(kind, of, payload(rc, id))
		return OK(Okay{OK: true}), err
	}
	return row
}

// Located turns what finds a row for [Show] into what finds it for [Change].
func Located[At any](find func(*ledger.Tx, *Request) (At, error),
	place func(At) (ledger.CompanyID, string)) func(*Request) (of ledger.CompanyID, id string, err error) {
	return func(rc *Request) (of ledger.CompanyID, id string, err error) {
		err = rc.View(func(tx *ledger.Tx) error {
			at, err := find(tx, rc)
			of, id = place(at)
			return err
		})
		return of, id, err
	}
}

// InPath is the place of a row that the path names beside its company.
func InPath(name string) func(*Request) (of ledger.CompanyID, id string, err error) {
	return func(rc *Request) (of ledger.CompanyID, id string, err error) {
		return CompanyID(rc), PathID(rc, name), nil
	}
}
