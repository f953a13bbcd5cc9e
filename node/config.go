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
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/scheduler"
)

const (
	// DefaultHTTP is where Paperclip's clients look for a server.
	DefaultHTTP = "127.0.0.1:3100"
	// TLSAuto encrypts the API where it is served beyond loopback, or a certificate
	// is given; TLSOn always; TLSOff never, which is for loopback only.
	TLSAuto = "auto"
	TLSOn   = "on"
	TLSOff  = "off"
	// MDNSAuto uses mDNS unless the peer port is on loopback; MDNSOff does not.
	MDNSAuto = "auto"
	MDNSOff  = "off"
	// DefaultMesh is the peer port on all interfaces.
	DefaultMesh = ":9470"
)

// Config says what a node is. The zero value of a field means its default.
type Config struct {
	Dir  string // data directory, made when absent; required
	HTTP string // listen address of the API; DefaultHTTP; "none" serves none
	// Private are networks that are not public and that agents of the http adapter
	// may be called in nevertheless.
	Private  []netip.Prefix
	Mesh     string            // UDP listen address for peers; DefaultMesh
	Name     string            // shown to people; default: the host's name
	MeshName string            // name of the mesh when this node founds one; default: after Name. Where there are several on the network, the one to join
	Join     string            // join token; used only while the node is no member of a mesh
	Labels   map[string]string // for placement
	Version  string            // of the program, shown in /api/health
	Level    uint64            // newest feature level that the program knows; default ledger.FeatureLevel, tests of upgrades set another
	Shim     []string          // command line that runs the run shim; default: this program with "run-shim"
	// Cgroup is the folder in which the trees of runs have their cgroups (shim.OpenCgroup);
	// default: they have none.
	Cgroup string
	// Nodes is the folder in which the nodes of this machine tell where their data
	// lies (shim.NodesDir); default: none.
	Nodes string
	// Containers is the command line of podman or docker, by its absolute path, for
	// agents in containers; default: whichever is found. {"none"} is neither.
	Containers []string
	// Compiler is the command line that compiles modules for the sandbox in a
	// process of its own; default: they are compiled in this one.
	Compiler []string
	Logger   *slog.Logger // default: discards

	// MDNS says on which interfaces this node is announced, and looks for others:
	// MDNSOff, the default, MDNSAuto, or their names separated by commas.
	MDNS string
	// MeshID is the mesh that a node without one asks to join, and no other; it may
	// be the beginning of the ID. Without it a node joins the only one that it finds.
	MeshID string
	// Found founds a mesh without looking for one.
	Found bool
	// Owner is an owner key (identity.EncodeOwnerKey) by which the node joins by itself.
	Owner string
	// Notice takes lines for the people at this node, such as its join code.
	Notice func(string)
	// RotateEvery is how old the mesh's keys become while this node leads; default KeyAge.
	RotateEvery time.Duration

	// KeyOverlap is how long gossip accepts a new key before it uses it, and the old
	// one after; the same on all nodes. Default keyOverlap.
	KeyOverlap time.Duration

	Seeds []string // host:port of peers to look for, besides those that the node knows
	Slots int      // runs at once; default scheduler.DefaultSlots
	Size  Size     // what the machine can give; default SizeAuto

	// Advertise is the address that peers are told; default: the socket's own,
	// or for a socket on all interfaces the first one that is up.
	Advertise netip.AddrPort

	// Lease is how long a node may act without the leader's word, Margin how
	// long before its end it stops by itself. Both are the same on all nodes.
	Lease, Margin time.Duration

	// HealWait is how long a node whose store was set aside looks for a quorum,
	// before it puts the store back and stops. Default healWait.
	HealWait time.Duration

	// Blobs bounds what this node keeps of attachments and images, and how soon it
	// looks after them.
	Blobs Blobs

	// ScrubEvery is within what time the node reads all of its store and its blobs once,
	// to find what rotted; below 0 it does so only on demand. Default DefaultScrubEvery.
	ScrubEvery time.Duration

	// Lines keeps the newest lines of the log for operators; nil: none are kept.
	Lines *LogRing
	// Backups is the schedule by which the node makes backups.
	Backups Backups

	// Auth is how people prove who they are (company.LocalTrusted or
	// company.Authenticated): on a mesh that this node founds the former when it is
	// "". On a mesh that is there already the mesh says it, and a node that was told
	// otherwise does not serve.
	Auth string
	// TLS says whether the API is encrypted: TLSAuto, the default, TLSOn or TLSOff.
	TLS string
	// TLSCert and TLSKey are PEM files of the API's certificate. Without them a
	// node that encrypts makes its own, once.
	TLSCert, TLSKey string
	// HTTPNames are further names that the API is reached by.
	HTTPNames []string
	// MetricsFrom are networks that read /metrics without a credential where people
	// sign in; default: none.
	MetricsFrom []netip.Prefix
	// BehindProxy says that a proxy on this machine brings all requests, encrypts
	// them, and tells truly from where they come.
	BehindProxy bool

	// Seams for tests: in-process meshes hand in sockets and file systems.
	Conn          net.PacketConn               // default: a UDP socket on Mesh
	FS            vfs.FS                       // for the store and snapshots; default: the disk
	OnDisk        bool                         // FS is the disk, wrapped: paths are below Dir
	Clock         scheduler.Clock              // default: the machine's boot-time clock
	Adapters      map[string]scheduler.Adapter // replaces the built-in adapters
	Machine       string                       // machine ID; default: this machine's
	TuneConsensus func(*consensus.Config)      // last word on what consensus is given
	Faults        Faults                       // planted bugs that show that the checkers bite
}

// Blobs says how a node keeps files. Zero values mean the defaults of ledger/blob.
type Blobs struct {
	Store blob.StoreConfig
	Every time.Duration // between looks after the blobs
	Gone  time.Duration // how long a node is away before its copies are made anew
	Grace time.Duration // how long a blob that nothing refers to is kept
}

// Faults are planted bugs, off by default, for tests that check the checkers.
type Faults struct {
	Consensus consensus.Faults
	Ledger    ledger.Faults
	// Rules wraps the handler of each kind of command, on every node alike; nil wraps none.
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

// validateTLS reports what is wrong about how the API is encrypted.
func (c Config) validateTLS() error {
	var errs []error
	loopback, err := api.Loopback(c.HTTP)
	beyond := c.HTTP != "none" && err == nil && !loopback
	switch c.TLS {
	case "", TLSAuto, TLSOn:
	case TLSOff:
		if beyond {
			errs = append(errs, fmt.Errorf("%w on %s without TLS: others would read along; --tls %s is for this machine only", api.ErrBind, c.HTTP, TLSOff))
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
		errs = append(errs, fmt.Errorf("%w on %s behind a proxy: whoever goes around the proxy would say where they come from; listen on loopback", api.ErrBind, c.HTTP))
	}
	return errors.Join(errs...)
}

// encrypts reports whether the API has a certificate.
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
	errs = append(errs, c.validateTLS(), c.Backups.validate())
	if len(c.Name) > maxName || strings.ContainsAny(c.Name, "/\n\x00") {
		errs = append(errs, fmt.Errorf("name %q: at most %d bytes, no slash or line break", c.Name, maxName))
	}
	if len(c.MeshName) > maxName {
		errs = append(errs, fmt.Errorf("mesh name: at most %d bytes", maxName))
	}
	if strings.ContainsFunc(c.MeshID, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) || len(c.MeshID) > 32 {
		errs = append(errs, fmt.Errorf("mesh ID %q: up to 32 digits of 0-9 and a-f", c.MeshID))
	}
	if c.MeshID != "" && c.Found {
		errs = append(errs, errors.New("a node founds a mesh or joins the one that is named, not both"))
	}
	if c.Owner != "" {
		if _, err := identity.DecodeOwnerKey(c.Owner); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
