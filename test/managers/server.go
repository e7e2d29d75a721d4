package managers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startTimeout is generous: a loaded machine needs many times the three seconds that a quiet one needs.
const startTimeout = 2 * time.Minute

// Server is an API server without components.
type Server struct {
	*Process
	// Root is the root of the repository; bin/ in it has the programs.
	Root string
	// Dir has the server's data and log.
	Dir string
	// Kubeconfig is the path of a kubeconfig file of an administrator.
	Kubeconfig string
	// Config connects as an administrator, without a limit on requests.
	Config *rest.Config
	// Client reads and writes unstructured objects, without a cache.
	Client client.Client
}

// StartServer starts an API server that keeps its data in dir, and returns when it answers.
func StartServer(ctx context.Context, root, dir string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err == nil {
		return nil, fmt.Errorf("folder %s has the data of an earlier API server: give another one, or remove it", dir)
	}
	s := &Server{Root: root, Dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	var err error
	s.Process, err = start(filepath.Join(root, "bin", "capi"), filepath.Join(dir, "apiserver.log"), nil,
		"serve", "--components=false", "--unsafe-no-fsync", "--data-dir", filepath.Join(dir, "data"),
		"--secure-port", "0", "--kubeconfig", s.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		_ = s.Stop() // The first error says what is wrong.
		return nil, fmt.Errorf("waiting for the API server, whose log is in %s: %w", dir, err)
	}
	return s, nil
}

func (s *Server) connect(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.Exited():
			return false, fmt.Errorf("it has ended")
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
