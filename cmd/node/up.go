package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
	"github.com/selvage-mesh/selvage/testnet"
)

// maxTokenFile bounds the file of a join token, in bytes.
const maxTokenFile = 8 << 10

// upOptions are the flags of up.
type upOptions struct {
	conf                                              node.Config
	engine, faults, level, file, profiles, size, mind string
	profile                                           string
	labels                                            map[string]string
	backups                                           opener
	noFiles                                           bool
}

func upCommand(_ *cli.CLI) *cobra.Command {
	var o upOptions
	cmd := &cobra.Command{
		Use: "up", Short: "Start a node: found a mesh, join one, or return to one", Args: cobra.NoArgs,
		Long: `Run a node in the foreground until it is told to stop (SIGTERM, SIGINT).

A node without state joins a mesh or founds one. With --join it joins by the token;
with an owner key by that; otherwise it looks around on the local network for some
seconds, asks the mesh that it finds, and shows a code to be compared on a member
(selvage pending, selvage approve). When it finds none, it founds its own. A node
with state comes back to its mesh, whatever the flags say. Tokens and owner keys are
secrets: give them as @FILE, or in $SELVAGE_JOIN and $SELVAGE_OWNER, so that they
are not seen in the process list.`,
		Example: `  selvage up --dir /var/lib/selvage --mesh 192.0.2.1:9470
  selvage up --dir /var/lib/selvage --mesh 192.0.2.2:9470 --join @token
  selvage up --auth authenticated --http 192.0.2.1:3100`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := configure(cmd, cmp.Or(o.file, os.Getenv("SELVAGE_CONFIG"))); err != nil {
				return err
			}
			return o.up(cmd)
		},
	}
	o.declare(cmd.Flags())
	return cmd
}

// up builds a node's configuration from the flags, and runs the node.
func (o *upOptions) up(cmd *cobra.Command) error {
	conf := &o.conf
	var err error
	if conf.Join, err = joinToken(conf.Join); err != nil {
		return err
	}
	if conf.Owner, err = ownerKey(conf.Owner, conf.Dir); err != nil {
		return err
	}
	conf.Notice = notices(cmd.ErrOrStderr())
	var l slog.Level
	var profile node.Profile
	errs := make([]error, 4) // all that is wrong is said at once
	errs[0] = l.UnmarshalText([]byte(o.level))
	conf.Mind, errs[1] = node.ParseMind(o.mind)
	conf.Size, errs[2] = node.ParseSize(o.size)
	profile, errs[3] = node.ParseProfile(o.profile)
	if err := errors.Join(errs...); err != nil {
		return cli.Misuse(errors.Join(err, conf.Validate()))
	}
	profile.Apply(conf, cmd.Flags().Changed)
	conf.Version, conf.Labels = version, o.labels
	if level != "" {
		if conf.Level, err = strconv.ParseUint(level, 10, 8); err != nil {
			return fmt.Errorf("the feature level that this program was linked with: %w", err)
		}
	}
	if conf.Backups.Every > 0 {
		if len(o.backups.recipients) == 0 && o.backups.passphraseFile == "" && os.Getenv("SELVAGE_PASSPHRASE") == "" {
			return cli.Misuse(
				errors.New("--snapshot-every needs --snapshot-to or --snapshot-passphrase-file: somebody has to " +
					"be able to open the backups"))
		}
		if conf.Backups.To, err = o.backups.to(cmd); err != nil {
			return err
		}
		conf.Backups.Files = !o.noFiles
	}
	conf.Lines = node.NewLogRing(cmd.ErrOrStderr())
	conf.Logger = slog.New(slog.NewJSONHandler(conf.Lines, &slog.HandlerOptions{Level: l}))
	slog.SetDefault(conf.Logger) // also for libraries that log by themselves
	// Otherwise the library prints its own line about small socket buffers.
	os.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true")
	tuneCollector(boundsOf(conf.Size.Small(node.Memory())))
	self, err := os.Executable()
	if err != nil {
		return err
	}
	conf.Shim, conf.Compiler = []string{self, "run-shim"}, []string{self, "sandbox", "compile"}
	home, _ := os.UserHomeDir()
	conf.Nodes = shim.NodesDir(os.Getenv("XDG_RUNTIME_DIR"), home)
	conf.Containers = strings.Fields(o.engine)
	var why string
	if conf.Cgroup, why = shim.OpenCgroup(); why != "" {
		conf.Logger.Info("runs have no cgroups", "reason", why)
	}
	if err := shim.PreferNode(); err != nil {
		conf.Logger.Debug("the node has no priority above others", "reason", err)
	}
	if o.faults != "" {
		stop, err := injectFaults(conf, o.faults)
		if err != nil {
			return err
		}
		defer stop()
	}
	if o.profiles != "" {
		stop, err := serveProfiles(o.profiles, conf.Logger)
		if err != nil {
			return err
		}
		defer func() { _ = stop() }() // an error of the profiler does not matter
	}
	return serve(cmd.Context(), cmd, *conf)
}

// declare defines the flags that set o.
func (o *upOptions) declare(f *pflag.FlagSet) {
	f.StringVar(&o.file, "config", "",
		"YAML file with these flags as keys; flags and $SELVAGE_<FLAG> go before it (default $SELVAGE_CONFIG)")
	f.StringVar(&o.conf.Dir, "dir", defaultDir(), "data directory")
	f.StringVar(&o.engine, "containers", "",
		"program and flags for agents in containers, such as \"/usr/bin/podman --runtime runc\"; none for no "+
			"containers (default: podman, or docker)")
	f.StringVar(&o.conf.HTTP, "http", node.DefaultHTTP,
		"address of the HTTP API; beyond loopback only where the mesh is authenticated")
	f.StringVar(&o.conf.Auth, "auth", "",
		"how people prove who they are on the mesh that this node founds: "+people.LocalTrusted+" (default) or "+
			people.Authenticated+"; on another mesh it must be the mesh's")
	f.StringVar(&o.conf.TLS, "tls", node.TLSAuto,
		"whether the API is encrypted: on, off (loopback only), or auto, which is on beyond loopback")
	f.StringVar(&o.conf.TLSCert, "tls-cert", "", "PEM file of the API's certificate (default: the node makes its own)")
	f.StringVar(&o.conf.TLSKey, "tls-key", "", "PEM file of the certificate's key")
	f.StringArrayVar(&o.conf.HTTPNames, "http-name", nil, "further name that the API is reached by (repeat for more)")
	f.BoolVar(&o.conf.BehindProxy, "behind-proxy", false,
		"a proxy on this machine brings the requests and says from where: trust its X-Forwarded-For and -Proto")
	f.StringVar(&o.conf.Mesh, "mesh", node.DefaultMesh, "UDP address for peers")
	f.StringVar(&o.conf.Name, "name", "", "name of the node (default: the host's)")
	f.StringVar(&o.conf.MeshName, "mesh-name", "",
		"name of the mesh that this node founds; where several are found on the network, of the one to join "+
			"(default: after the node)")
	f.StringVar(&o.conf.MDNS, "mdns", node.MDNSAuto,
		"where the node is announced and looks for others by multicast DNS: auto, off, or names of interfaces "+
			"separated by commas")
	f.StringVar(&o.conf.MeshID, "mesh-id", "",
		"the mesh (or the beginning of its ID) that a node without one asks to join, and no other")
	f.BoolVar(&o.conf.Found, "found", false, "found a mesh without looking for one")
	f.StringVar(&o.conf.Owner, "owner", "", "owner key, or @FILE that holds it (default: owner.key in the data directory)")
	f.DurationVar(&o.conf.RotateEvery, "rotate-keys", node.KeyAge,
		"how old the mesh's data and gossip keys become while this node leads")
	f.StringVar(&o.conf.Join, "join", "", "join token, or @FILE that holds it")
	f.StringArrayVar(&o.conf.Seeds, "seed", nil, "host:port of a peer to look for (repeat for more)")
	f.StringToStringVar(&o.labels, "label", nil,
		"labels for placement, key=value, with which the node is admitted; later: selvage node label")
	f.Func("metrics-from",
		"network that reads /metrics without a credential where people sign in, such as 10.1.2.0/24 or "+
			"127.0.0.1/32 (repeat for more)", func(v string) error {
			p, err := netip.ParsePrefix(v)
			o.conf.MetricsFrom = append(o.conf.MetricsFrom, p.Masked())
			return err
		})
	f.Func("http-agents",
		"network beyond the public ones in which agents may be called by URL, such as 10.1.0.0/16 (repeat for more)",
		func(v string) error {
			p, err := netip.ParsePrefix(v)
			o.conf.Private = append(o.conf.Private, p)
			return err
		})
	f.IntVar(&o.conf.Slots, "slots", scheduler.DefaultSlots, "how many runs this node carries out at once")
	f.IntVar(&o.conf.MaxProcesses, "max-processes", kernel.DefaultMaxProcesses,
		"how many processes are spawned on this node at once, beside runs and services")
	f.StringVar(&o.profile, "profile", string(node.ProfileDynamic),
		"what the node is made of: single (no mesh), static (peers by --seed and --join alone), dynamic, or "+
			"cognitive (as dynamic, with --mind on)")
	f.StringVar(&o.mind, "mind", string(node.MindAuto),
		"look for memories that are alike and link them: on, off, or auto: where there is memory enough")
	f.StringVar(&o.size, "size", string(node.SizeAuto),
		"small for a board with little memory, normal, or auto: by the memory there is")
	f.DurationVar(&o.conf.Backups.Every, "snapshot-every", 0,
		"how often this node makes a backup by itself, such as 24h (default: never)")
	f.IntVar(&o.conf.Backups.Keep, "snapshot-keep", node.DefaultBackups, "how many of them it keeps")
	f.StringVar(&o.conf.Backups.Dir, "snapshot-dir", "", "where it puts them (default: backups in the data directory)")
	f.StringArrayVar(&o.backups.recipients, "snapshot-to", nil,
		"public key of who can open them, or @FILE; see selvage snapshot key (repeat for more)")
	f.StringVar(&o.backups.passphraseFile, "snapshot-passphrase-file", "",
		"file with a passphrase that opens them (or $SELVAGE_PASSPHRASE)")
	f.BoolVar(&o.noFiles, "snapshot-no-files", false, "leave attachments and images out of them")
	f.DurationVar(&o.conf.ScrubEvery, "scrub-every", node.DefaultScrubEvery,
		"within what time this node reads all of its disk to find what rotted; -1s: only when selvage scrub asks for it")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.faults, "faults", "", "file of faults to inject (testnets only)")
	_ = f.MarkHidden("faults") // it is defined
	f.StringVar(&o.profiles, "pprof", "", "loopback address on which Go's profiler is served (default: nowhere)")
}

func defaultDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/selvage"
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ".selvage"
	}
	return filepath.Join(home, ".selvage")
}

// joinToken reads the token from --join or the environment.
func joinToken(flag string) (string, error) {
	if flag == "" {
		flag = os.Getenv("SELVAGE_JOIN")
	}
	return readSecretFlag(flag, "join token")
}

// readSecretFlag reads a flag that is a secret, or @FILE with the secret.
func readSecretFlag(flag, what string) (string, error) {
	path, isFile := strings.CutPrefix(flag, "@")
	if !isFile {
		return strings.TrimSpace(flag), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("no %s in %s", what, path)
	} else if err != nil {
		return "", err
	}
	if info.Size() > maxTokenFile {
		return "", fmt.Errorf("%s is too large for a %s", path, what)
	}
	b, err := os.ReadFile(path)
	return strings.TrimSpace(string(b)), err
}

// injectFaults puts the faults of a file between the node and its socket and disk.
func injectFaults(conf *node.Config, path string) (stop func(), err error) {
	addr, err := net.ResolveUDPAddr("udp", conf.Mesh)
	if err != nil {
		return nil, cli.Misuse(err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("peer port: %w", err)
	}
	w := testnet.WatchFaults(path, conn.LocalAddr().String())
	conf.Conn = testnet.FaultyConn{UDPConn: conn, Faults: w}
	conf.FS, conf.OnDisk = testnet.FaultyFS{FS: vfs.Default, Faults: w}, true
	return w.Close, nil
}

// serve runs the node until ctx ends or the node stops by itself. It reopens a node
// whose store is damaged, or whose state differs from the majority's; the node then
// rebuilds itself from its peers.
func serve(ctx context.Context, cmd *cobra.Command, conf node.Config) error {
	for quick := 0; ; {
		began := time.Now()
		err := serveOnce(ctx, cmd, conf)
		if time.Since(began) >= rebuildPause {
			quick = 0
		}
		quick++
		if !errors.Is(err, node.ErrDiverged) && !errors.Is(err, node.ErrDamaged) || conf.Conn != nil ||
			quick > maxQuickRebuilds {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "selvage:", err, "- rebuilding")
	}
}

// A node that runs for less than rebuildPause each time is rebuilt at most
// maxQuickRebuilds times in a row; after that a person must look at it.
const (
	rebuildPause     = time.Minute
	maxQuickRebuilds = 2
)

func serveOnce(ctx context.Context, cmd *cobra.Command, conf node.Config) error {
	conf.Wall = cli.Wall
	n, err := node.Open(ctx, conf)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "node %s (%s) of mesh %s serves on %s\n", n.Name(), n.ID().Short(), n.Mesh(),
		n.HTTPURL())
	if f := n.Fingerprint(); f != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "its certificate has the fingerprint %s; without TLS it serves this machine on %s\n",
			f, n.LocalURL())
	}
	if n.Unclaimed(ctx) {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"nobody administers it yet: selvage auth signup, then selvage auth claim (on another machine with the code in %s)\n",
			filepath.Join(conf.Dir, node.ClaimFile))
	}
	notified := make(chan struct{})
	watching, done := context.WithCancel(ctx)
	go keepMemory(watching, boundsOf(conf.Size.Small(node.Memory())), n.Trim, n.Widen)
	go func() {
		defer close(notified)
		notify(watching, n, conf.Logger)
	}()
	defer func() { done(); <-notified }()
	var fatal error
	select {
	case <-ctx.Done():
	case fatal = <-n.Failed():
	}
	return errors.Join(fatal, n.Close())
}

func identityCommand() *cobra.Command {
	var dir string
	var keep bool
	reset := &cobra.Command{
		Use: "reset", Short: "Give a copied data directory an identity of its own", Args: cobra.NoArgs,
		Long: `Give a copied data directory an identity of its own. The state beside it belongs
to the node that it was copied from: remove it, or move the directory, and join again.
With --keep the keys stay: the disk moved to this machine and the old one is gone for good.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := identity.Reset(dir, identity.MachineID(), keep)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), k.ID())
			return nil
		},
	}
	reset.Flags().BoolVar(&keep, "keep", false, "keep the keys, the old machine is gone for good")
	g := cli.Group("identity", "The identity of the node in a data directory", reset)
	g.PersistentFlags().StringVar(&dir, "dir", defaultDir(), "data directory")
	return g
}
