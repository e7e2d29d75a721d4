package move

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// A dry run of a restore fails where the restore does: in a cluster without providers. Without a cluster, it reads the files.
func TestDryRunOfRestore(t *testing.T) {
	empty := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(empty.Close)
	dir := t.TempDir()
	content := `{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": "c", "namespace": "ns", "uid": "c"}}`
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "Cluster_ns_c.yaml"), []byte(content), 0o600))
	restore := func(dry bool, connect func(management.Kubeconfig) (*management.Cluster, error)) (string, error) {
		streams, buffers := iostreams.Test()
		opts := &Options{IO: streams, Connect: connect, Clock: clock.RealClock{}, FromDirectory: dir, DryRun: dry}
		err := run(t.Context(), opts)
		return buffers.Out.String(), err
	}
	noProviders := func(management.Kubeconfig) (*management.Cluster, error) {
		return management.New(&rest.Config{Host: empty.URL}, "default")
	}
	for _, dry := range []bool{true, false} {
		if out, err := restore(dry, noProviders); !errors.Is(err, management.ErrNotInitialized) {
			t.Errorf("without providers (dry: %t): %v\n%s", dry, err, out)
		}
	}
	none := func(management.Kubeconfig) (*management.Cluster, error) { return nil, management.ErrNoKubeconfig }
	if out, err := restore(true, none); err != nil || out != "create or keep Cluster ns/c\n" {
		t.Errorf("without a cluster: %v\n%s", err, out)
	}
	if out, err := restore(false, none); !errors.Is(err, management.ErrNoKubeconfig) {
		t.Errorf("nothing can be restored without a cluster: %v\n%s", err, out)
	}
}
