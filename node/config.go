package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/scheduler"
)

const (
	// DefaultHTTP is the address at which Paperclip's clients expect a server.
	DefaultHTTP = "127.0.0.1:3100"
	// TLSAuto encrypts the API if it is served beyond loopback or a certificate is given.
	// TLSOn always encrypts, TLSOff never; it is allowed on loopback only.
	TLSAuto = "auto"
	TLSOn   = "on"
	TLSOff  = "off"
	// MDNSAuto uses mDNS unless the peer port is on loopback; MDNSOff never does.
	MDNSAuto = "auto"
	MDNSOff  = "off"
	// DefaultMesh is the peer port on all interfaces.
	DefaultMesh = ":9470"
)

// Config configures a node. The zero value of a field means its default.
type Config struct {
	Dir  string // data directory, created when absent; required
	HTTP string // listen address of the API; DefaultHTTP; "none" serves none
	// Private are private networks in which the http adapter may nevertheless call agents.
	Private []netip.Prefix
	Mesh    string // UDP listen address for peers; DefaultMesh
	Name    string // shown to people; default: the host's name
	// name of the mesh when this node founds one; default: derived from Name. If several meshes are on the network, the
	// one to join
	MeshName string
	Join     string            // join token; used only while the node is not a member of a mesh
	Labels   map[string]string // for placement
	Version  string            // of the program, shown in /api/health
	// newest feature level that the program knows; default ledger.FeatureLevel, tests of upgrades set another
	Level uint64
	Shim  []string // command line that runs the run shim; default: this program with "run-shim"
	// Cgroup is the cgroup under which runs get their own cgroups (shim.OpenCgroup).
	// Default: they have none.
	Cgroup string
	// Nodes is the folder in which the nodes of this machine register their data directories
	// (shim.NodesDir). Default: none.
	Nodes string
	// Containers is the command line of podman or docker, with its absolute path, for agents
	// in containers. Default: whichever is found. {"none"} disables both.
	Containers []string
	// Compiler is the command line that compiles modules for the sandbox in a separate
	// process. Default: this process compiles them.
	Compiler []string
	Logger   *slog.Logger // default: discards

	// MDNS selects the interfaces on which this node is announced and looks for others:
	// MDNSOff, the default, MDNSAuto, or interface names separated by commas.
	MDNS string
	// MeshID is the only mesh that a node without one asks to join, or a prefix of its ID.
	// Without it a node joins the only mesh that it finds.
	MeshID string
	// Found founds a mesh without looking for one.
	Found bool
	// Owner is an owner key (identity.EncodeOwnerKey) with which the node joins without
	// approval.
	Owner string
	// Notice receives lines for the people at this node, such as its join code.
	Notice func(string)
	// RotateEvery is the age at which this node, while it leads, rotates the mesh's keys.
	// Default KeyAge.
	RotateEvery time.Duration

	// KeyOverlap is how long gossip accepts a new key before it uses it, and the old key
	// afterwards. It must be the same on all nodes. Default keyOverlap.
	KeyOverlap time.Duration

	Seeds []string // host:port of peers to look for, besides the known ones
	Slots int      // concurrent runs; default scheduler.DefaultSlots
	Size  Size     // profile of the machine's resources; default SizeAuto
	Mind  Mind     // whether the node looks for likes among memories; default MindOff
	// Profile is what the node is made of, which other fields follow; see Profile.Apply.
	Profile Profile
	// MaxProcesses bounds the processes that are spawned on this node, without runs and
	// services; default kernel.DefaultMaxProcesses.
	MaxProcesses int

	// Advertise is the address that peers are told. Default: the socket's own, or for a
	// socket on all interfaces the first interface that is up.
	Advertise netip.AddrPort

	// Lease is how long a node may act without hearing from the leader, Margin how long
	// before its end the node stops by itself. Both must be the same on all nodes.
	Lease, Margin time.Duration

	// HealWait is how long a node whose store was set aside waits for a quorum before it
	// puts the store back and stops. Default healWait.
	HealWait time.Duration

	// Blobs limits what this node stores of attachments and images, and sets how often it
	// maintains them.
	Blobs Blobs

	// ScrubEvery is the period in which the node reads its whole store and all blobs once,
	// to find damaged data. Below 0 it does so on demand only. Default DefaultScrubEvery.
	ScrubEvery time.Duration

	// Lines keeps the newest lines of the log for operators; nil keeps none.
	Lines *LogRing
	// Backups is the schedule of the node's backups.
	Backups Backups

	// Auth is the authentication mode (company.LocalTrusted or company.Authenticated). On a
	// mesh that this node founds, "" means LocalTrusted. An existing mesh has its own mode,
	// and a node configured with another one does not serve.
	Auth string
	// TLS says whether the API is encrypted: TLSAuto, the default, TLSOn or TLSOff.
	TLS string
	// TLSCert and TLSKey are PEM files of the API's certificate. Without them a node that
	// encrypts creates its own, once.
	TLSCert, TLSKey string
	// HTTPNames are further host names of the API.
	HTTPNames []string
	// MetricsFrom are networks that may read /metrics without a credential where people sign
	// in. Default: none.
	MetricsFrom []netip.Prefix
	// BehindProxy says that all requests come through a proxy on this machine, which
	// encrypts them and reports the client's address truthfully.
	BehindProxy bool

	// Hooks for tests: in-process meshes pass in sockets and file systems.
	Conn          net.PacketConn               // default: a UDP socket on Mesh
	FS            vfs.FS                       // for the store and snapshots; default: the disk
	OnDisk        bool                         // FS wraps the disk: paths are below Dir
	Clock         scheduler.Clock              // default: the machine's boot-time clock
	Wall          func() time.Time             // the date and time of day; default time.Now
	Adapters      map[string]scheduler.Adapter // replaces the built-in adapters
	Machine       string                       // machine ID; default: this machine's
	TuneConsensus func(*consensus.Config)      // applied last to the configuration of consensus
	Faults        Faults                       // injected bugs that the tests' checkers must detect
}

// Blobs configures a node's stored files. Zero values mean the defaults of ledger/blob.
type Blobs struct {
	Store blob.StoreConfig
	Every time.Duration // interval of maintenance
	Gone  time.Duration // how long a node is away before its copies are replaced
	Grace time.Duration // how long an unreferenced blob is kept
}

// Faults are injected bugs, off by default, for tests of the checkers.
type Faults struct {
	Consensus consensus.Faults
	Ledger    ledger.Faults
	// Rules wraps the handler of each kind of command, in the same way on every node; nil
	// wraps none.
	Rules func(kind string, h ledger.Handler) ledger.Handler
}

func (c Config) withDefaults() Config {
	host, _ := os.Hostname()
	c.HTTP = cmp.Or(c.HTTP, DefaultHTTP)
	c.Mesh = cmp.Or(c.Mesh, DefaultMesh)
	c.Name = cmp.Or(c.Name, host, "node")
	c.MDNS = cmp.Or(c.MDNS, MDNSOff)
	c.HealWait = cmp.Or(c.HealWait, healWait)
	c.KeyOverlap = cmp.Or(c.KeyOverlap, keyOverlap)
	c.RotateEvery = cmp.Or(c.RotateEvery, KeyAge)
	if c.Notice == nil {
		c.Notice = func(string) {}
	}
	c.ScrubEvery = cmp.Or(c.ScrubEvery, DefaultScrubEvery)
	c.Version = cmp.Or(c.Version, "dev")
	c.Level = cmp.Or(c.Level, ledger.FeatureLevel)
	if c.Clock == nil {
		c.Clock = shim.BootTime
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	c.Backups.Keep = cmp.Or(c.Backups.Keep, DefaultBackups)
	c.Backups.Dir = cmp.Or(c.Backups.Dir, filepath.Join(c.Dir, "backups"))
	return c
}

// said describes the configuration for the kernel's log, without secrets.
func (c Config) said() string {
	return fmt.Sprintf("profile %s, http %s, mesh %s, mdns %s, mind %s, %d seeds", cmp.Or(c.Profile, ProfileDynamic),
		c.HTTP, c.Mesh, c.MDNS, cmp.Or(c.Mind, MindOff), len(c.Seeds))
}

// validateTLS returns the errors of the TLS settings.
func (c Config) validateTLS() error {
	var errs []error
	loopback, err := api.Loopback(c.HTTP)
	beyond := c.HTTP != "none" && err == nil && !loopback
	switch c.TLS {
	case "", TLSAuto, TLSOn:
	case TLSOff:
		if beyond {
			errs = append(errs, fmt.Errorf("%w on %s without TLS: others would read along; --tls %s is for this machine only",
				api.ErrBind, c.HTTP, TLSOff))
		}
		if c.TLSCert != "" {
			errs = append(errs, fmt.Errorf("--tls %s takes no certificate", TLSOff))
		}
	default:
		errs = append(errs, fmt.Errorf("TLS is %s, %s or %s, not %q", TLSAuto, TLSOn, TLSOff, c.TLS))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("a certificate needs its key: give both --tls-cert and --tls-key"))
	}
	if c.BehindProxy && beyond {
		errs = append(errs, fmt.Errorf("%w on %s behind a proxy: whoever goes around the proxy would say where they come "+
			"from; listen on loopback", api.ErrBind, c.HTTP))
	}
	return errors.Join(errs...)
}

// encrypts reports whether the API uses TLS.
func (c Config) encrypts() bool {
	loopback, err := api.Loopback(c.HTTP)
	return c.HTTP != "none" && err == nil && c.TLS != TLSOff && (c.TLS == TLSOn || c.TLSCert != "" || !loopback)
}

// Validate reports every problem at once.
func (c Config) Validate() error {
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("no data directory: give one with --dir"))
	}
	if c.HTTP != "none" {
		if _, err := api.Loopback(c.HTTP); err != nil {
			errs = append(errs, err)
		} else if c.Auth != "" {
			errs = append(errs, api.CheckBind(c.HTTP, c.Auth))
		}
	}
	if _, err := net.ResolveUDPAddr("udp", c.Mesh); err != nil && c.Conn == nil {
		errs = append(errs, fmt.Errorf("mesh address %q: give host:port, or :port for all interfaces: %w", c.Mesh, err))
	}
	for _, s := range c.Seeds {
		if _, _, err := net.SplitHostPort(s); err != nil {
			errs = append(errs, fmt.Errorf("seed %q: give host:port: %w", s, err))
		}
	}
	errs = append(errs, c.validateTLS(), c.Backups.validate(), c.Profile.validate(c))
	if len(c.Name) > maxName || strings.ContainsAny(c.Name, "/\n\x00") {
		errs = append(errs, fmt.Errorf("name %q: at most %d bytes, no slash or line break", c.Name, maxName))
	}
	if len(c.MeshName) > maxName {
		errs = append(errs, fmt.Errorf("mesh name: at most %d bytes", maxName))
	}
	if strings.ContainsFunc(c.MeshID, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) ||
		len(c.MeshID) > 32 {
		errs = append(errs, fmt.Errorf("mesh ID %q: up to 32 digits of 0-9 and a-f", c.MeshID))
	}
	if c.MeshID != "" && c.Found {
		errs = append(errs, errors.New("a node founds a mesh or joins the one that is named, not both"))
	}
	if c.MaxProcesses < 0 || c.MaxProcesses > kernel.MostProcesses {
		errs = append(errs, fmt.Errorf("max-processes: 1 to %d, not %d", kernel.MostProcesses, c.MaxProcesses))
	}
	if c.Slots < 0 || c.Slots > scheduler.MaxSlots {
		errs = append(errs, fmt.Errorf("slots: 1 to %d, not %d", scheduler.MaxSlots, c.Slots))
	}
	if c.Owner != "" {
		if _, err := identity.DecodeOwnerKey(c.Owner); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
