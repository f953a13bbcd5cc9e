package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// bootTimeout bounds a request that is told that the node boots, headers and answer.
const bootTimeout = 5 * time.Second

// lives moves the node to its next state. Where it can not, it has failed before.
func (n *Node) lives(s kernel.KernelState) {
	if err := n.boot.Move(s, n.conf.Wall()); err != nil {
		n.log.Debug("state of the node", "error", err)
		return
	}
	n.log.Info("node", "state", s, "bootMs", n.boot.Took(n.conf.Wall()).Milliseconds())
}

// Boot returns where the node is in its life, Events its kernel's log.
func (n *Node) Boot() *kernel.Boot { return n.boot }

// Events returns the log of the node's kernel.
func (n *Node) Events() *kernel.EventLog { return n.events }

// A port is a bound address that one server after the other accepts connections of: one that
// says that the node boots, the API, and one that says that the node is shutting down.
type port struct {
	*net.TCPListener

	mu   sync.Mutex // guards stop
	stop func()     // ends the server that says how the node stands; nil: there is none
}

// hire ends the server before and returns a listener for the next. Closing it does not close
// the port.
func (p *port) hire() net.Listener {
	p.dismiss()
	_ = p.SetDeadline(time.Time{}) // of the one before, which has ended
	return &tenant{port: p, closed: make(chan struct{})}
}

func (p *port) dismiss() {
	p.mu.Lock()
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// release closes the port.
func (p *port) release() error {
	p.dismiss()
	return p.TCPListener.Close()
}

// A tenant accepts connections of a port until it is closed.
type tenant struct {
	*port
	once   sync.Once
	closed chan struct{}
}

// Accept waits for a connection.
func (t *tenant) Accept() (net.Conn, error) {
	c, err := t.TCPListener.Accept()
	select {
	case <-t.closed:
		if err == nil {
			c.Close()
		}
		return nil, net.ErrClosed
	default:
		return c, err
	}
}

// Close ends Accept.
func (t *tenant) Close() error {
	t.once.Do(func() {
		close(t.closed)
		_ = t.TCPListener.SetDeadline(time.Now()) // wakes Accept; the port may be closed
	})
	return nil
}

// serveBoot says on the ports of the API that the node boots, until the API is served.
func (n *Node) serveBoot() {
	at := n.serving
	n.bootOn(at.port.(*port), at.cert)
	if at.near != at.port {
		n.bootOn(at.near.(*port), nil)
	}
}

// bootOn says on a port how the node stands.
func (n *Node) bootOn(p *port, cert *servedCert) {
	l := cert.encrypt(p.hire())
	server := &http.Server{Handler: http.HandlerFunc(n.tellBoot), ReadTimeout: bootTimeout, WriteTimeout: bootTimeout,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			n.log.Warn("tell how the node stands", "error", err)
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // a request that is not over in a second
		}
		<-done
	}
}

// tellBoot answers every request of a node that does not serve: that the process lives, and
// otherwise 503 with the state and the phase.
func (n *Node) tellBoot(w http.ResponseWriter, r *http.Request) {
	state, phase := n.boot.Status()
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Connection", "close") // the API that serves next knows its own connections only
	h.Set("Cache-Control", "no-store")
	body := map[string]any{"status": "ok"}
	status := http.StatusOK
	if r.URL.Path != "/healthz" {
		status = http.StatusServiceUnavailable
		h.Set("Retry-After", "1")
		why := "The kernel is not ready: this node is booting, phase " + string(phase)
		if state != kernel.Booting {
			why = "The kernel is not ready: this node is shutting down"
		}
		body = map[string]any{"status": "not_ready", "state": state, "phase": phase, "reason": why, "error": why,
			"message": why, "code": "KERNEL_NOT_READY"}
	}
	b, _ := json.Marshal(body) // strings always encode
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may be gone
}

// A Profile is what a node is made of.
type Profile string

// The profiles of --profile.
const (
	ProfileSingle    Profile = "single"    // no mesh: it founds its own and nobody joins it
	ProfileStatic    Profile = "static"    // peers by seeds and tokens alone, no multicast
	ProfileDynamic   Profile = "dynamic"   // peers are looked for on the network too; the default
	ProfileCognitive Profile = "cognitive" // as dynamic, and the mind looks for likes among memories
)

// ParseProfile reads a profile; "" is ProfileDynamic.
func ParseProfile(s string) (Profile, error) {
	switch p := Profile(cmp.Or(s, string(ProfileDynamic))); p {
	case ProfileSingle, ProfileStatic, ProfileDynamic, ProfileCognitive:
		return p, nil
	}
	return "", errors.New("profile " + s + ": give single, static, dynamic or cognitive")
}

// Apply sets what a profile decides. given reports whether somebody has set a field of these
// names: mdns, mesh, mind; such a field is kept, unless it contradicts the profile, which
// Validate says.
func (p Profile) Apply(c *Config, given func(flag string) bool) {
	c.Profile = p
	set := func(flag string, do func()) {
		if !given(flag) {
			do()
		}
	}
	switch p {
	case ProfileSingle:
		set("mdns", func() { c.MDNS = MDNSOff })
		set("mesh", func() { c.Mesh = "127.0.0.1:0" })
		set("mind", func() { c.Mind = MindOff })
		c.Found = true
	case ProfileStatic:
		set("mdns", func() { c.MDNS = MDNSOff })
		set("mind", func() { c.Mind = MindOff })
		c.Found = c.Found || c.Join == "" && c.Owner == ""
	case ProfileDynamic:
		// its values are the defaults of the flags
	case ProfileCognitive:
		set("mind", func() { c.Mind = MindOn })
	}
}

// validate returns what contradicts a profile.
func (p Profile) validate(c Config) error {
	var errs []error
	bad := func(when bool, text string) {
		if when {
			errs = append(errs, errors.New("profile "+string(p)+": "+text))
		}
	}
	switch p {
	case ProfileSingle:
		bad(c.Join != "" || c.Owner != "" || len(c.Seeds) > 0, "a node without a mesh takes no --join, --owner or --seed")
		bad(c.MDNS != "" && c.MDNS != MDNSOff, "a node without a mesh announces itself nowhere; leave --mdns out")
	case ProfileStatic:
		bad(c.MDNS != "" && c.MDNS != MDNSOff,
			"peers are given by --seed and --join alone; leave --mdns out, or use the profile dynamic")
	}
	return errors.Join(errs...)
}
