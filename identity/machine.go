package identity

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// MachineID returns the operating system's ID of this machine, or "" if it has none (some
// containers); then a copied directory can not be detected.
func MachineID() string {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		b, err := os.ReadFile(name)
		id := strings.TrimSpace(string(b))
		if err == nil && id != "" && id != "uninitialized" { // systemd writes that during the first boot
			return id
		}
	}
	return ""
}

// machineTag is the form of a machine ID in the identity file: an HMAC keyed with the ID,
// because systemd asks programs not to store the ID itself. It also depends on the node key,
// so that tags of different nodes can not be compared.
func (k *Keys) machineTag(machine string) string {
	if machine == "" {
		return noMachine
	}
	h := hmac.New(sha256.New, []byte(machine))
	h.Write([]byte("selvage/machine/v1"))
	h.Write(k.Public())
	return hex.EncodeToString(h.Sum(nil)[:idBytes])
}
