// Package service calls the services of the mesh: it chooses a provider that lives and whose
// breaker lets calls pass, holds both sides to the contract, and probes providers.
//
// A provider gets a message with the JSON {"service":NAME,"method":NAME,"params":…} that wants
// a reply, and replies {"result":…} or {"error":"why"}. An error that a provider replies is an
// answer. No answer in time, a provider that can not be reached, and an answer that breaks the
// contract are failures, and count on the provider's breaker.
package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// DefaultTimeout and MaxTimeout bound a call.
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 5 * time.Minute
	// MaxParams bounds the parameters and the result of a call, in bytes.
	MaxParams = 1 << 20
	// maxTries bounds the providers that one call is offered to. It is offered to another one
	// only if the one before can not have got it.
	maxTries = 3
	// ProbeEvery is how often a node probes the providers that run on it, probeWait bounds one
	// probe, and SickAfter failures in a row make a provider unhealthy.
	ProbeEvery = 10 * time.Second
	probeWait  = 5 * time.Second
	SickAfter  = 3
	// maxKnown bounds the providers that are remembered.
	maxKnown = 4096
)

// Reasons why a call has no result.
var (
	// ErrNoMethod: the contract has no such method. ErrParams: the parameters are not what it takes.
	ErrNoMethod = errors.New("the service has no such method")
	ErrParams   = errors.New("the parameters break the contract")
	// ErrNoProvider: none runs. ErrOpen: the breakers of all are open.
	ErrNoProvider = errors.New("no provider of the service runs")
	ErrOpen       = errors.New("no provider is called now: each has failed again and again")
	// ErrTimeout: no answer in time; the provider may have done what it was asked.
	ErrTimeout = errors.New("no answer in time")
	// ErrLost: the provider ended, or its node died, before it answered; it may have done it.
	ErrLost = errors.New("the provider was lost before it answered")
	// ErrContract: the answer is not what the contract says. ErrRefused: the provider answered
	// with an error of its own.
	ErrContract = errors.New("the answer breaks the contract")
	ErrRefused  = errors.New("the provider refused")
)

// A Provider is a process that provides a service.
type Provider struct {
	Node string `json:"node_id"`
	PID  uint64 `json:"pid"`
}

// Address is where a provider is.
func (p Provider) Address() kernel.Address {
	return kernel.Address{Node: p.Node, PID: kernel.PID(p.PID)}
}

// ProvidersOf returns the processes that provide a service now.
func ProvidersOf(tx *ledger.Tx, s service.Service) (out []Provider) {
	d, _ := replica.Named(tx, s.Provider)
	for _, r := range d.Replicas {
		if r.State == replica.Running && r.PID != 0 && replica.SessionOpen(tx, r) {
			out = append(out, Provider{Node: r.Node, PID: r.PID})
		}
	}
	return out
}

// Ask sends a request to a process of the mesh and returns its reply. unsent says of an error
// that the process can not have got it.
type Ask func(ctx context.Context, to kernel.Address, body json.RawMessage) (reply json.RawMessage,
	unsent bool, err error)

// A Registry calls services for one node. It is safe for concurrent use.
type Registry struct {
	ask Ask
	now func() time.Time

	mu      sync.Mutex // guards what follows
	known   map[Provider]*provider
	turn    int
	schemas map[string]*jsonschema.Resolved // by their text
}

// A provider is what this node knows of one.
type provider struct {
	breaker
	sick   int // probes that failed in a row
	probed time.Time
	wrong  string // of the last probe
}

// New returns a registry that asks by ask. now is the time; nil: of the machine.
func New(ask Ask, now func() time.Time) *Registry {
	if now == nil {
		now = time.Now
	}
	return &Registry{ask: ask, now: now, known: map[Provider]*provider{}, schemas: map[string]*jsonschema.Resolved{}}
}

// at returns what is known of a provider. r.mu is held.
func (r *Registry) at(p Provider) *provider {
	k := r.known[p]
	if k == nil {
		if len(r.known) >= maxKnown {
			clear(r.known)
		}
		k = &provider{}
		r.known[p] = k
	}
	return k
}

// CheckSchema reports why text is not a JSON schema, nil if it is one, or empty.
func CheckSchema(text json.RawMessage) error {
	_, err := compile(text)
	return err
}

func compile(text json.RawMessage) (*jsonschema.Resolved, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil) // without a loader: a schema refers to itself alone
}

// fits reports why a value does not fit a schema.
func (r *Registry) fits(schema, value json.RawMessage) error {
	r.mu.Lock()
	s, ok := r.schemas[string(schema)]
	r.mu.Unlock()
	if !ok {
		var err error
		if s, err = compile(schema); err != nil {
			return err
		}
		r.mu.Lock()
		if len(r.schemas) >= maxKnown {
			clear(r.schemas)
		}
		r.schemas[string(schema)] = s
		r.mu.Unlock()
	}
	if s == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	return s.Validate(v)
}

// An Answer is what came of a call.
type Answer struct {
	Result   json.RawMessage
	By       Provider
	Attempts int
	Took     time.Duration
}

// Call calls a method of a service at one of its providers. The error is one of this package's,
// with details. It ends with ctx, and with the time-out.
func (r *Registry) Call(ctx context.Context, s service.Service, providers []Provider, method string,
	params json.RawMessage, timeout time.Duration) (Answer, error) {
	return r.CallBy(ctx, r.ask, s, providers, method, params, timeout)
}

// CallBy is [Registry.Call] for one who asks by itself.
func (r *Registry) CallBy(ctx context.Context, ask Ask, s service.Service, providers []Provider, method string,
	params json.RawMessage, timeout time.Duration) (a Answer, err error) {
	began := r.now()
	defer func() { a.Took = r.now().Sub(began) }()
	m, ok := s.Method(method)
	if !ok {
		return a, fmt.Errorf("%w: %s has %s", ErrNoMethod, s.Name, names(s))
	}
	if len(params) == 0 {
		params = json.RawMessage("null")
	}
	if len(params) > MaxParams {
		return a, fmt.Errorf("%w: they have %d bytes, at most %d", ErrParams, len(params), MaxParams)
	}
	if err := r.fits(m.Params, params); err != nil {
		return a, fmt.Errorf("%w: %w", ErrParams, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(cmp.Or(timeout, DefaultTimeout), MaxTimeout))
	defer cancel()
	if len(providers) == 0 {
		return a, fmt.Errorf("%w: %s is provided by %s", ErrNoProvider, s.Name, s.Provider)
	}
	err = ErrOpen
	for _, p := range r.inTurn(providers) {
		if a.Attempts == maxTries || ctx.Err() != nil {
			break
		}
		if !r.allowed(p) {
			continue
		}
		a.Attempts++
		a.By = p
		var unsent bool
		if a.Result, unsent, err = r.one(ctx, ask, s, m, p, params); err == nil || !unsent {
			return a, err
		}
	}
	return a, err
}

func names(s service.Service) (out []string) {
	for _, m := range s.Methods {
		out = append(out, m.Name)
	}
	return out
}

// inTurn orders providers: each call begins with another one.
func (r *Registry) inTurn(all []Provider) []Provider {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn = (r.turn + 1) % len(all)
	return slices.Concat(all[r.turn:], all[:r.turn])
}

// Callable returns those of some providers whose breakers let calls pass.
func (r *Registry) Callable(all []Provider) (out []Provider) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range all {
		if k := r.known[p]; k == nil || k.state(r.now()) != Open {
			out = append(out, p)
		}
	}
	return out
}

func (r *Registry) allowed(p Provider) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at(p).allow(r.now())
}

// one calls one provider, and notes how that went.
func (r *Registry) one(ctx context.Context, ask Ask, s service.Service, m service.Method, p Provider,
	params json.RawMessage) (result json.RawMessage, unsent bool, err error) {
	result, unsent, err = r.send(ctx, ask, s, m, p, params)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b := r.at(p); {
	case err == nil, errors.Is(err, ErrRefused):
		b.done(r.now(), "")
	case errors.Is(err, context.Canceled): // the caller is gone: that says nothing of the provider
		b.release()
	default:
		b.done(r.now(), err.Error())
	}
	return result, unsent, err
}

func (r *Registry) send(ctx context.Context, ask Ask, s service.Service, m service.Method, p Provider,
	params json.RawMessage) (result json.RawMessage, unsent bool, err error) {
	body, err := json.Marshal(map[string]any{"service": s.Name, "method": m.Name, "params": params})
	if err != nil {
		return nil, true, err
	}
	reply, unsent, err := ask(ctx, p.Address(), body)
	switch {
	case err != nil && !unsent && errors.Is(cmp.Or(ctx.Err(), err), context.DeadlineExceeded):
		return nil, false, fmt.Errorf("%w: %w", ErrTimeout, err)
	case err != nil && !unsent && ctx.Err() == nil:
		return nil, false, fmt.Errorf("%w: %w", ErrLost, err)
	case err != nil:
		return nil, unsent, err
	}
	var said struct {
		Result json.RawMessage `json:"result"`
		Error  *string         `json:"error"`
	}
	if len(reply) > MaxParams {
		return nil, false, fmt.Errorf("%w: it has %d bytes, at most %d", ErrContract, len(reply), MaxParams)
	}
	if err := json.Unmarshal(bytes.TrimSpace(reply), &said); err != nil || said.Error == nil && said.Result == nil {
		return nil, false, fmt.Errorf(`%w: it is neither {"result":…} nor {"error":"…"}`, ErrContract)
	}
	if said.Error != nil {
		return nil, false, fmt.Errorf("%w: %.1000s", ErrRefused, *said.Error)
	}
	if err := r.fits(m.Result, said.Result); err != nil {
		return nil, false, fmt.Errorf("%w: result: %w", ErrContract, err)
	}
	return said.Result, false, nil
}

// A Health says how a service or a provider is.
type Health string

// The kinds of health.
const (
	Healthy   Health = "healthy"
	Degraded  Health = "degraded"
	Unhealthy Health = "unhealthy"
	Unknown   Health = "unknown" // it was not probed
)

// A Standing is what this node knows of a provider.
type Standing struct {
	Provider
	Health   Health     `json:"health" enum:"healthy,degraded,unhealthy,unknown"`
	Breaker  State      `json:"breaker" enum:"closed,open,half_open"`
	Failures int        `json:"failures"` // of calls, in a row
	Sick     int        `json:"failed_probes"`
	Error    string     `json:"error"`
	Probed   *time.Time `json:"probed_at"`
}

// Standings returns what this node knows of providers.
func (r *Registry) Standings(providers []Provider) []Standing {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Standing{}
	for _, p := range providers {
		k := r.known[p]
		if k == nil {
			k = &provider{}
		}
		st := Standing{Provider: p, Health: Unknown, Breaker: k.state(r.now()), Failures: k.failures, Sick: k.sick,
			Error: cmp.Or(k.wrong, k.why)}
		if !k.probed.IsZero() {
			st.Probed = &k.probed
			switch {
			case k.sick >= SickAfter:
				st.Health = Unhealthy
			case k.sick > 0:
				st.Health = Degraded
			default:
				st.Health = Healthy
			}
		}
		out = append(out, st)
	}
	return out
}

// Probe asks a provider by the probe method of its service whether it works, and returns how
// many probes have failed in a row. A provider that refuses does not work. Without a probe
// method a provider that runs works.
func (r *Registry) Probe(ctx context.Context, s service.Service, p Provider) (sick int) {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	var err error
	if m, ok := s.Method(s.Probe); ok {
		_, _, err = r.send(ctx, r.ask, s, m, p, json.RawMessage("null"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.at(p)
	k.probed = r.now()
	if err == nil {
		k.sick, k.wrong = 0, ""
		return 0
	}
	k.sick++
	k.wrong = err.Error()
	return k.sick
}

// Overall is the health of a service with providers.
func Overall(all []Standing) Health {
	good, known := 0, 0
	for _, s := range all {
		if s.Health != Unknown {
			known++
		}
		if s.Health == Healthy && s.Breaker == Closed {
			good++
		}
	}
	switch {
	case len(all) == 0:
		return Unhealthy
	case known == 0:
		return Unknown
	case good == len(all):
		return Healthy
	case good > 0:
		return Degraded
	}
	return Unhealthy
}
