package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Files in the container, besides the configuration.
const (
	// recordPath is the record of what HAProxy has loaded. It is empty while a configuration is replaced.
	recordPath = "/usr/local/etc/haproxy/loaded.json"
	// candidatePath is a configuration that is validated before it replaces the current one.
	candidatePath = "/usr/local/etc/haproxy/candidate.cfg"
)

// startTime is how long HAProxy takes at most from the start of its container until it handles signals: before, they are lost.
const startTime = 5 * time.Second

// templateKey is the key of templates in ConfigMaps.
const templateKey = "value"

// loadRecord is what HAProxy has loaded.
type loadRecord struct {
	// Checksum is that of the configuration. It is empty if HAProxy may have been starting when it was told to load the configuration.
	Checksum string `json:"checksum"`
	// Machines are the names of the infrastructure machines in it, sorted.
	Machines []string `json:"machines,omitempty"`
}

func recordOf(config []byte, machines []kinds.Machine) loadRecord {
	sum := sha256.Sum256(config)
	r := loadRecord{Checksum: hex.EncodeToString(sum[:])}
	for _, m := range machines {
		r.Machines = append(r.Machines, m.Name)
	}
	return r
}

func (r loadRecord) encode() ([]byte, error) { return json.Marshal(r) }

// configure makes HAProxy load the configuration of the current machines, unless it has.
func (c *Controller) configure(ctx context.Context, s *scope) (step.Result, error) {
	backends, left, err := c.backends(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	config, validate, err := c.render(ctx, s, backends)
	if err != nil {
		return step.Done(), err
	}
	s.machines = slices.SortedFunc(maps.Values(backends), func(a, b kinds.Machine) int { return cmp.Compare(a.Name, b.Name) })
	s.left = left
	desired := recordOf(config, s.machines)
	loaded, err := c.loaded(ctx, s)
	if err != nil || loaded.Checksum == desired.Checksum {
		return step.Done().KeepCondition(), err
	}
	if err := c.confirmGone(ctx, s, loaded); err != nil {
		return step.Done(), err
	}
	if validate {
		if err := c.validate(ctx, s, config); err != nil {
			return step.Done(), err
		}
	}
	return c.load(ctx, s, config, desired)
}

// render renders the configuration, and reports whether HAProxy must validate it first.
func (c *Controller) render(
	ctx context.Context, s *scope, backends map[string]kinds.Machine,
) (config []byte, validate bool, err error) {
	in := loadbalancer.Config{Port: portOf(s.obj), IPv6: isIPv6(s.cluster), Backends: map[string]string{}}
	for name, m := range backends {
		in.Backends[name] = addressOf(m, in.IPv6)
	}
	template, err := c.template(ctx, s.obj)
	if err != nil {
		return nil, false, err
	}
	config, err = template.Render(in)
	if err != nil {
		return nil, false, failed("cannot render the configuration of HAProxy: %w", err)
	}
	return config, s.obj.Spec.LoadBalancer.CustomHAProxyConfigTemplateRef != nil, nil
}

// template returns the template of the configuration. ConfigMaps are neither cached nor watched: most belong to users. A changed
// one takes effect with the next reconcile, at the latest after --sync-period.
func (c *Controller) template(ctx context.Context, obj kinds.Cluster) (*loadbalancer.Template, error) {
	ref := obj.Spec.LoadBalancer.CustomHAProxyConfigTemplateRef
	if ref == nil {
		return loadbalancer.BuiltIn()
	}
	found := &corev1.ConfigMap{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, failed("ConfigMap %s of %s does not exist", ref.Name, templateRef(obj))
	}
	if err != nil {
		return nil, failed("cannot read ConfigMap %s of %s: %w", ref.Name, templateRef(obj), err)
	}
	source, ok := found.Data[templateKey]
	if !ok {
		return nil, failed("ConfigMap %s of %s has no key %q", ref.Name, templateRef(obj), templateKey)
	}
	template, err := loadbalancer.Parse(source)
	if err != nil {
		return nil, failed("ConfigMap %s of %s: %w", ref.Name, templateRef(obj), err)
	}
	return template, nil
}

// templateRef returns where the reference to the template is.
func templateRef(obj kinds.Cluster) string {
	return obj.Path + ".loadBalancer.customHAProxyConfigTemplateRef"
}

// loaded returns what HAProxy has loaded, as far as is known.
func (c *Controller) loaded(ctx context.Context, s *scope) (loadRecord, error) {
	content, err := c.engine.Read(ctx, s.name, recordPath)
	if engine.IsNotFound(err) {
		return loadRecord{}, nil
	}
	if err != nil {
		return loadRecord{}, failed("%w", err)
	}
	var r loadRecord
	if err := json.Unmarshal(content, &r); err != nil {
		return loadRecord{}, nil // A configuration was being replaced.
	}
	return r, nil
}

// confirmGone reads machines live that leave the configuration although the cache does not show a deletion: to a stale cache,
// new machines do not exist yet.
func (c *Controller) confirmGone(ctx context.Context, s *scope, loaded loadRecord) error {
	known := append(slices.Clone(s.machines), s.left...)
	for _, name := range loaded.Machines {
		if slices.ContainsFunc(known, func(m kinds.Machine) bool { return m.Name == name }) {
			continue
		}
		live := c.kinds.NewMachine()
		err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.obj.Namespace, Name: name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if m, ok := c.kinds.MachineOf(live); ok && m.DeletionTimestamp.IsZero() && addressOf(m, isIPv6(s.cluster)) != "" {
			return step.Stale("%s %s is in use, but the cache does not show that", m.Kind, name)
		}
	}
	return nil
}

// validate makes HAProxy check a configuration without loading it.
func (c *Controller) validate(ctx context.Context, s *scope, config []byte) error {
	if err := c.engine.Copy(ctx, s.name, engine.File{Path: candidatePath, Content: config}); err != nil {
		return failed("%w", err)
	}
	err := c.engine.Exec(ctx, s.name, engine.Command{Args: []string{"haproxy", "-c", "-f", candidatePath}})
	if exit := (*engine.ExitError)(nil); errors.As(err, &exit) {
		return failed("HAProxy rejects the configuration of %s: %s", templateRef(s.obj), firstAlert(exit.Output))
	}
	if err != nil {
		return failed("%w", err)
	}
	return nil
}

// firstAlert returns the first line of HAProxy's output that says what is wrong.
func firstAlert(output string) string {
	for line := range strings.Lines(output) {
		if strings.Contains(line, "ALERT") {
			return shorten(line)
		}
	}
	return lastLine(output)
}

// load replaces the configuration and makes HAProxy load it. The record is empty in between: a process that is killed does not
// leave a record of something that was not loaded. What is loaded while HAProxy may be starting is loaded once more afterwards.
func (c *Controller) load(ctx context.Context, s *scope, config []byte, desired loadRecord) (step.Result, error) {
	result := step.Done()
	// By another clock, a container can start in the future. It is then not known when it was started.
	if age := c.Clock.Since(s.state.Started); age >= 0 && age < startTime {
		result, desired.Checksum = step.Again(startTime-age), ""
	}
	recorded, err := desired.encode()
	if err != nil {
		return step.Done(), err
	}
	err = c.engine.Copy(ctx, s.name, engine.File{Path: recordPath}, engine.File{Path: loadbalancer.Path, Content: bytes.Clone(config)})
	if err == nil {
		err = c.engine.Signal(ctx, s.name, "SIGHUP")
	}
	if err == nil {
		err = c.engine.Copy(ctx, s.name, engine.File{Path: recordPath, Content: recorded})
	}
	if err != nil {
		return step.Done(), failed("%w", err)
	}
	return result.KeepCondition(), nil
}
