package managers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv/process"
)

// startTimeout is many times what an idle machine takes, which is three seconds.
const startTimeout = 2 * time.Minute

// Options configure StartServer.
type Options struct {
	// Root is the root of the repository. The programs are in bin/.
	Root string
	// Dir is the folder for the server's data and log.
	Dir string
	// Components makes the server run the components of Deployments; otherwise none run in it.
	Components bool
	// Accounts makes Connection return the component's own ServiceAccount, with the RBAC of the released manifests,
	// instead of an administrator.
	Accounts bool
	// AuditLog is the file for the metadata of every request. Empty: no audit log.
	AuditLog string
	// Stored is the version in which kinds are stored that have it. Empty: as the definitions have it.
	Stored string
}

// Server is an API server, by default without components.
type Server struct {
	*process.Process
	Options
	// Kubeconfig is the path of a kubeconfig file of an administrator.
	Kubeconfig string
	// Config connects as an administrator, without a limit on requests.
	Config *rest.Config
	// Client reads and writes unstructured objects, without a cache.
	Client client.Client

	released string // folder of the release, if it is written
}

// StartServer starts an API server, and returns when it responds.
func StartServer(ctx context.Context, o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	data := o.DataDir()
	if _, err := os.Stat(data); err == nil {
		return nil, fmt.Errorf("folder %s has the data of an earlier API server: use another folder, or remove it", o.Dir)
	}
	s := &Server{Options: o, Kubeconfig: filepath.Join(o.Dir, "kubeconfig")}
	args := []string{
		"serve", "--components=" + strconv.FormatBool(o.Components),
		"--unsafe-no-fsync", "--data-dir", data, "--secure-port", "0", "--kubeconfig", s.Kubeconfig,
	}
	if o.AuditLog != "" {
		args = append(args, "--audit-log-path", o.AuditLog)
	}
	var err error
	s.Process, err = process.Start(capi(o.Root), filepath.Join(o.Dir, "apiserver.log"), nil, args...)
	if err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		_ = s.Stop() // The first error is the cause.
		return nil, fmt.Errorf("waiting for the API server (log in %s): %w", o.Dir, err)
	}
	return s, nil
}

// DataDir returns the folder for the server's data.
func (o Options) DataDir() string { return filepath.Join(o.Dir, "data") }

// capi returns the path of the program with the API server. Tests of other packages use the same variable.
func capi(root string) string {
	return cmp.Or(os.Getenv("CAPI_BIN"), filepath.Join(root, "bin", "capi"))
}

func (s *Server) connect(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.Exited():
			return false, errors.New("it has exited")
		default:
		}
		config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
		if err != nil {
			return false, nil
		}
		config.QPS = -1
		config.WarningHandler = rest.NoWarnings{}
		s.Config = config
		if s.Client, err = client.New(config, client.Options{}); err != nil {
			return false, nil
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind("NamespaceList")
		return s.Client.List(ctx, list) == nil, nil
	})
}
