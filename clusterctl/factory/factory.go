// Package factory provides the dependencies of clusterctl's commands: streams, configuration, repositories, clusters.
//
// A command copies what it needs from the Factory into its options, so that tests can replace each part.
package factory

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/template"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// Factory is created once per run of clusterctl.
type Factory struct {
	IO      *iostreams.Streams
	Version version.Info
	// Program is how the user calls clusterctl, for commands that are proposed.
	Program string
	// Env looks up environment variables.
	Env template.Lookup
	// ConfigPath is the value of --config; it is set before any of the functions is called.
	ConfigPath string
	// Config returns the configuration, which is read once.
	Config func(ctx context.Context) (*config.Config, error)
	// Store returns the shared store of provider repositories.
	Store func(ctx context.Context) (*repository.Store, error)
	// Catalog returns the providers of the configuration, with the shared store.
	Catalog func(ctx context.Context) (*catalog.Catalog, error)
	// Connect prepares a connection to a management cluster.
	Connect func(management.Kubeconfig) (*management.Cluster, error)
}

// New returns the Factory of the running program. httpClient may be nil.
func New(streams *iostreams.Streams, env template.Lookup, httpClient *http.Client) *Factory {
	f := &Factory{IO: streams, Version: version.Get(), Program: "clusterctl", Env: env}
	var loaded *config.Config
	f.Config = func(ctx context.Context) (*config.Config, error) {
		if loaded != nil {
			return loaded, nil
		}
		c, err := config.Load(ctx, config.Options{Path: f.ConfigPath, Local: localConfig(), Env: env, HTTP: httpClient, Warn: streams.Warnf})
		if err != nil {
			return nil, err
		}
		loaded = c
		return c, nil
	}
	var store *repository.Store
	f.Store = func(ctx context.Context) (*repository.Store, error) {
		if store != nil {
			return store, nil
		}
		c, err := f.Config(ctx)
		if err != nil {
			return nil, err
		}
		options, err := StoreOptions(c)
		if err != nil {
			return nil, err
		}
		options.HTTP, options.Report = httpClient, streams.Infof
		store = repository.NewStore(options)
		return store, nil
	}
	f.Catalog = func(ctx context.Context) (*catalog.Catalog, error) {
		c, err := f.Config(ctx)
		if err != nil {
			return nil, err
		}
		s, err := f.Store(ctx)
		if err != nil {
			return nil, err
		}
		return &catalog.Catalog{Config: c, Store: s}, nil
	}
	f.Connect = func(k management.Kubeconfig) (*management.Cluster, error) {
		return management.Connect(k, f.Version.UserAgent("clusterctl"))
	}
	return f
}

// localConfig returns the configuration of the repository that was built with this program, "" for a release.
func localConfig() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return config.Local(program, version.LocalConfig())
}

// Environment is the Lookup of the process's environment.
func Environment(name string) (string, bool) {
	return os.LookupEnv(name)
}

// StoreOptions returns the options for reading repositories.
func StoreOptions(c *config.Config) (repository.Options, error) {
	list, _ := c.Variable(config.GoProxyVariable)
	proxy, err := repository.GoProxyURL(list, version.GoProxy())
	if err != nil {
		return repository.Options{}, err
	}
	token, _ := c.Variable(config.GitHubTokenVariable)
	return repository.Options{GoProxy: proxy, GitHubToken: token, OverridesFolder: c.OverridesFolder}, nil
}

// Verbosity returns the configured log level, 0 if there is none.
func Verbosity(c *config.Config) (int, error) {
	value, _ := c.Variable(config.LogLevelVariable)
	if value = strings.TrimSpace(value); value == "" {
		return 0, nil
	}
	level, err := strconv.Atoi(value)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: it must be an integer", config.LogLevelVariable, value)
	}
	return level, nil
}
