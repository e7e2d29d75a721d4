package managers

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimecatalog "sigs.k8s.io/cluster-api/exp/runtime/catalog"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

// extensionTimeout is how long an extension may take to serve, and to be discovered.
const extensionTimeout = time.Minute

// Extension is a server of runtime extensions in this process.
type Extension struct {
	*server.Server
	// Catalog has the hooks.
	Catalog *runtimecatalog.Catalog

	url string
	ca  []byte
}

// NewExtension returns a server without handlers, which does not serve yet. dir is a folder for its certificate; addHooks adds the hooks
// that it can have handlers for.
func NewExtension(dir string, addHooks func(*runtimecatalog.Catalog) error) (*Extension, error) {
	e := &Extension{Catalog: runtimecatalog.New()}
	if err := addHooks(e.Catalog); err != nil {
		return nil, err
	}
	var err error
	if e.ca, err = issue(dir, "extension"); err != nil {
		return nil, fmt.Errorf("issuing the certificate of the extension: %w", err)
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	const host = "127.0.0.1"
	e.url = "https://" + net.JoinHostPort(host, strconv.Itoa(port))
	e.Server, err = server.New(server.Options{Catalog: e.Catalog, Host: host, Port: port, CertDir: dir})
	return e, err
}

// Serve serves until the context ends. It returns when the server responds.
func (e *Extension) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- e.Start(ctx) }()
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, extensionTimeout, true, func(context.Context) (bool, error) {
		select {
		case err := <-failed:
			return false, errors.Join(errors.New("the server ended"), err)
		default:
			return e.Healthy(&http.Request{}) == nil, nil
		}
	})
	if err != nil {
		return fmt.Errorf("starting the extension: %w", err)
	}
	return nil
}

// Register creates an ExtensionConfig for the namespaces with some labels, and returns when a manager has discovered the extension.
func (e *Extension) Register(ctx context.Context, c client.Client, name string, labels map[string]any) error {
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"clientConfig":      map[string]any{"url": e.url, "caBundle": base64.StdEncoding.EncodeToString(e.ca)},
		"namespaceSelector": map[string]any{"matchLabels": labels},
	}}}
	config.SetAPIVersion("runtime.cluster.x-k8s.io/v1alpha1")
	config.SetKind("ExtensionConfig")
	config.SetName(name)
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, extensionTimeout, true, func(ctx context.Context) (bool, error) {
		if config.GetUID() == "" {
			last = c.Create(ctx, config) // The manager's webhook may not serve yet.
			return false, nil
		}
		last = c.Get(ctx, client.ObjectKeyFromObject(config), config)
		handlers, _, _ := unstructured.NestedSlice(config.Object, "status", "handlers")
		return last == nil && len(handlers) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the discovery of the extension: %w", errors.Join(err, last))
	}
	return nil
}
