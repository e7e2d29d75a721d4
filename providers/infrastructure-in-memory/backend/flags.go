package backend

import (
	"fmt"

	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
)

// Flags are the flags of a manager that simulates machines.
type Flags struct {
	dataDir string
	ports   string
	storage int64
}

// AddTo adds the flags to a set. ports is the default of the range of ports. Managers that may share an address have different ones, so
// that none gets a port that belongs to a cluster of another one, which is restarting.
func (f *Flags) AddTo(fs *pflag.FlagSet, ports string) {
	fs.StringVar(&f.ports, "api-server-ports", ports,
		"Range of ports for the API servers of workload clusters. They only listen on the address in POD_IP, or on 127.0.0.1 if it is not set")
	fs.Int64Var(&f.storage, "workload-storage-limit", store.DefaultLimit,
		"Maximum size of all objects of one workload cluster, in bytes, with an overhead of 1024 bytes per object")
	fs.StringVar(&f.dataDir, "data-dir", "",
		"Directory for the content of workload clusters, which then survives restarts. Empty: in memory only")
}

// Validate returns an error for values that are not valid.
func (f *Flags) Validate() error {
	if _, err := lab.ParsePorts(f.ports); err != nil {
		return fmt.Errorf("--api-server-ports: %w", err)
	}
	if f.storage <= 0 {
		return fmt.Errorf("--workload-storage-limit is %d: it must be positive", f.storage)
	}
	return nil
}
