// Package config reads clusterctl's configuration: a file, the environment over it, and defaults under it.
//
// The file has the repositories of providers, overrides for their images, and values of variables. The meaning of URLs
// and variables is up to other packages.
package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/template"
)

// Defaults for cert-manager.
const (
	CertManagerVersion = "v1.14.4"
	CertManagerTimeout = 10 * time.Minute
	// overridesName is the name of the default folder of overrides.
	overridesName  = "overrides"
	certManagerURL = "https://github.com/cert-manager/cert-manager/releases/%s/cert-manager.yaml"
)

// Variables that configure clusterctl itself.
const (
	LogLevelVariable            = "CLUSTERCTL_LOG_LEVEL"
	DisableVersionCheckVariable = "CLUSTERCTL_DISABLE_VERSIONCHECK"
	GitHubTokenVariable         = "GITHUB_TOKEN" // The name of a variable, not its value.
	GoProxyVariable             = "GOPROXY"
)

// Config is the configuration. It is immutable.
type Config struct {
	// Source is where the configuration was read from; empty when there are only defaults.
	Source string
	// Providers are the known providers, sorted by type and name.
	Providers   []packages.Provider
	CertManager CertManager
	// Images overrides parts of image names in manifests.
	Images components.ImageOverrides
	// OverridesFolder holds files that override published ones.
	OverridesFolder string

	values map[string]string
	env    template.Lookup
}

// CertManager is the cert-manager to install if one is required.
type CertManager struct {
	URL     string
	Version string
	// Timeout bounds the wait until it is ready; defaults to 10m.
	Timeout time.Duration
}

// Variable returns the value of a variable: from the environment, otherwise from the configuration file. Names are
// compared in upper case with underscores, but in the environment the name as it is comes first; an empty value counts as set.
func (c *Config) Variable(name string) (string, bool) {
	canonical := variableName(name)
	for _, name := range []string{name, canonical} {
		if value, ok := c.env(name); ok {
			return value, true
		}
	}
	value, ok := c.values[canonical]
	return value, ok
}

// With returns a copy of the configuration with the given variables, which override the environment and the file.
func (c *Config) With(variables map[string]string) *Config {
	merged := *c
	merged.env = func(name string) (string, bool) {
		for _, name := range []string{name, variableName(name)} {
			if value, ok := variables[name]; ok {
				return value, true
			}
		}
		return c.env(name)
	}
	return &merged
}

// Dir returns the folder of clusterctl's files: cluster-api in the user's configuration folder.
func Dir(env template.Lookup) string {
	home := xdg.ConfigHome
	if dir, ok := env("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		home = dir
	}
	return filepath.Join(home, "cluster-api")
}

// Default returns the configuration without a file.
func Default(env template.Lookup) *Config {
	return &Config{
		Providers: packages.Defaults(),
		CertManager: CertManager{
			URL: fmt.Sprintf(certManagerURL, CertManagerVersion), Version: CertManagerVersion, Timeout: CertManagerTimeout,
		},
		OverridesFolder: filepath.Join(Dir(env), overridesName),
		env:             env,
	}
}

// file holds the keys with a meaning; all others are variables.
type file struct {
	Providers []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
		Type string `json:"type"`
	} `json:"providers"`
	CertManager struct {
		URL     string `json:"url"`
		Version string `json:"version"`
		Timeout string `json:"timeout"`
	} `json:"cert-manager"`
	Images          components.ImageOverrides `json:"images"`
	OverridesFolder string                    `json:"overridesFolder"`
}

// apply lays a file's contents over c. Errors name the key.
func (c *Config) apply(f file, values map[string]string) error {
	merged := maps.Clone(c.values)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, values)
	c.values = merged
	if err := c.applyProviders(f); err != nil {
		return err
	}
	if err := c.applyCertManager(f); err != nil {
		return err
	}
	if f.Images != nil {
		c.Images = f.Images
	}
	if f.OverridesFolder != "" {
		folder, err := c.expand(f.OverridesFolder)
		if err != nil {
			return fmt.Errorf("overridesFolder: %w", err)
		}
		c.OverridesFolder = folder
	}
	return nil
}

func (c *Config) applyProviders(f file) error {
	merged := map[string]packages.Provider{}
	for _, p := range c.Providers {
		merged[p.ManifestLabel()] = p
	}
	for i, entry := range f.Providers {
		p := packages.Provider{Name: entry.Name}
		for _, t := range packages.Types() {
			if string(t) == entry.Type {
				p.Type = t
			}
		}
		if entry.Type != "" && p.Type == "" {
			return fmt.Errorf("providers[%d].type of %q: %q is not a provider type: use one of %v", i, entry.Name, entry.Type, packages.Types())
		}
		if err := p.Validate(); err != nil {
			return fmt.Errorf("providers[%d]: %w", i, err)
		}
		if entry.URL == "" {
			return fmt.Errorf("providers[%d].url of %q is empty: set the URL of its components file", i, entry.Name)
		}
		url, err := c.expand(entry.URL)
		if err != nil {
			return fmt.Errorf("providers[%d].url of %q: %w", i, entry.Name, err)
		}
		p.URL = url
		merged[p.ManifestLabel()] = p
	}
	c.Providers = slices.Collect(maps.Values(merged))
	packages.Sort(c.Providers)
	return nil
}

func (c *Config) applyCertManager(f file) error {
	c.CertManager.Version = cmp.Or(f.CertManager.Version, c.CertManager.Version)
	if _, err := packages.ParseVersion(c.CertManager.Version); err != nil {
		return fmt.Errorf("cert-manager.version: %w", err)
	}
	url, err := c.expand(f.CertManager.URL)
	if err != nil {
		return fmt.Errorf("cert-manager.url: %w", err)
	}
	c.CertManager.URL = cmp.Or(url, fmt.Sprintf(certManagerURL, c.CertManager.Version))
	if timeout, err := time.ParseDuration(f.CertManager.Timeout); err == nil {
		c.CertManager.Timeout = timeout
	}
	return nil
}

// expand replaces the variables in a path or URL.
func (c *Config) expand(text string) (string, error) {
	t, err := template.Parse([]byte(text))
	if err != nil {
		return "", err
	}
	out, err := t.Execute(c.Variable)
	return string(out), err
}

func variableName(key string) string {
	return strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}
