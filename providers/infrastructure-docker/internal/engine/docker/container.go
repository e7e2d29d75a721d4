package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/util/wait"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
)

// Create implements engine.Engine.
func (d *Docker) Create(ctx context.Context, c engine.Container) error {
	attempt := fmt.Sprintf("cannot create container %q", c.Name)
	if err := checkName(attempt, c.Name); err != nil {
		return err
	}
	options, err := createOptions(c)
	if err != nil {
		return &engine.Error{Reason: engine.Invalid, Attempt: attempt, Err: err}
	}
	var id string
	err = d.within(ctx, longTimeout, attempt, func(ctx context.Context) error {
		created, err := d.api.ContainerCreate(ctx, options)
		id = created.ID
		return err
	})
	if err != nil {
		return err
	}
	err = d.Copy(ctx, id, c.Files...)
	if err == nil {
		err = d.within(ctx, longTimeout, fmt.Sprintf("cannot start container %q", c.Name), func(ctx context.Context) error {
			_, err := d.api.ContainerStart(ctx, id, client.ContainerStartOptions{})
			return err
		})
	}
	if err != nil {
		// By its ID, because the name may be that of another container by now, and even if ctx has ended.
		return errors.Join(err, d.Remove(context.WithoutCancel(ctx), id))
	}
	return nil
}

// createOptions translates a container for Docker.
func createOptions(c engine.Container) (client.ContainerCreateOptions, error) {
	exposed, published, err := portsOf(c.Ports)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	volumes := make(map[string]struct{}, len(c.Volumes))
	for _, path := range c.Volumes {
		volumes[path] = struct{}{}
	}
	host := &container.HostConfig{
		NetworkMode:  container.NetworkMode(c.Network),
		PortBindings: published,
		Privileged:   c.Privileged,
		SecurityOpt:  c.SecurityOptions,
		Sysctls:      c.Sysctls,
		Tmpfs:        c.Tmpfs,
	}
	if c.PrivateCgroups {
		host.CgroupnsMode = container.CgroupnsModePrivate
	}
	switch c.Restart {
	case engine.Always:
		host.RestartPolicy.Name = container.RestartPolicyUnlessStopped
	case engine.Once:
		host.RestartPolicy = container.RestartPolicy{Name: container.RestartPolicyOnFailure, MaximumRetryCount: 1}
	}
	for _, path := range c.Devices {
		host.Devices = append(host.Devices, container.DeviceMapping{PathOnHost: path, PathInContainer: path, CgroupPermissions: "rwm"})
	}
	if host.Binds, err = bindsOf(c.Mounts); err != nil {
		return client.ContainerCreateOptions{}, err
	}
	return client.ContainerCreateOptions{
		Name: c.Name,
		Config: &container.Config{
			Hostname: c.Hostname, Image: c.Image, Labels: c.Labels, Entrypoint: c.Entrypoint, Cmd: c.Args, Env: c.Env,
			Tty: c.TTY, Volumes: volumes, ExposedPorts: exposed,
		},
		HostConfig: host,
	}, nil
}

// bindsOf returns mounts in the old form, which creates missing directories of the host. The newer form can do that only since
// Docker 23.
func bindsOf(mounts []engine.Mount) ([]string, error) {
	var binds []string
	for _, m := range mounts {
		if strings.Contains(m.HostPath+m.ContainerPath, ":") {
			return nil, fmt.Errorf("invalid mount of %q at %q: paths must not contain colons", m.HostPath, m.ContainerPath)
		}
		bind := m.HostPath + ":" + m.ContainerPath
		if m.ReadOnly {
			bind += ":ro"
		}
		binds = append(binds, bind)
	}
	return binds, nil
}

func portsOf(ports []engine.Port) (network.PortSet, network.PortMap, error) {
	exposed, published := network.PortSet{}, network.PortMap{}
	for _, p := range ports {
		port, ok := network.PortFrom(p.ContainerPort, network.TCP)
		if !ok {
			return nil, nil, fmt.Errorf("invalid port %d", p.ContainerPort)
		}
		binding := network.PortBinding{}
		if p.HostPort != 0 {
			binding.HostPort = strconv.Itoa(int(p.HostPort))
		}
		if p.HostIP != "" {
			ip, err := netip.ParseAddr(p.HostIP)
			if err != nil {
				return nil, nil, fmt.Errorf("invalid address %q: %w", p.HostIP, err)
			}
			binding.HostIP = ip
		}
		exposed[port] = struct{}{}
		published[port] = append(published[port], binding)
	}
	return exposed, published, nil
}

// Start implements engine.Engine.
func (d *Docker) Start(ctx context.Context, name string) error {
	return d.onContainer(ctx, longTimeout, "cannot start", name, func(ctx context.Context) error {
		var last error
		// Of networks that processes created at the same time, EnsureNetwork removes all but one in a moment.
		err := wait.PollUntilContextTimeout(ctx, ambiguousPoll, ambiguousTimeout, true, func(ctx context.Context) (bool, error) {
			_, last = d.api.ContainerStart(ctx, name, client.ContainerStartOptions{})
			return last == nil || !strings.Contains(last.Error(), "is ambiguous"), nil
		})
		return cmp.Or(last, err)
	})
}

// ambiguousTimeout is how long a container is not started because several networks have the name of its own.
const (
	ambiguousPoll    = 200 * time.Millisecond
	ambiguousTimeout = 5 * time.Second
)

// Inspect implements engine.Engine.
func (d *Docker) Inspect(ctx context.Context, name string) (*engine.State, error) {
	var state *engine.State
	err := d.onContainer(ctx, shortTimeout, "cannot inspect", name, func(ctx context.Context) error {
		found, err := d.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if err == nil {
			state = inspected(found.Container)
		}
		return err
	})
	return state, err
}

func inspected(c container.InspectResponse) *engine.State {
	state := &engine.State{Name: strings.TrimPrefix(c.Name, "/"), ID: c.ID}
	if c.Config != nil {
		state.Image, state.Labels = c.Config.Image, c.Config.Labels
	}
	if s := c.State; s != nil {
		// Podman does not count paused containers as running.
		state.Running, state.Paused, state.ExitCode = s.Running || s.Paused, s.Paused, s.ExitCode
		if started, err := time.Parse(time.RFC3339Nano, s.StartedAt); err == nil && started.Year() > 1 {
			state.Started = started
		}
	}
	if c.NetworkSettings == nil {
		return state
	}
	mode := ""
	if c.HostConfig != nil {
		mode = string(c.HostConfig.NetworkMode)
	}
	state.IPv4, state.IPv6 = addresses(c.NetworkSettings.Networks, mode)
	for port, bindings := range c.NetworkSettings.Ports {
		for _, b := range bindings {
			number, err := strconv.ParseUint(b.HostPort, 10, 16)
			if err != nil || port.Proto() != network.TCP {
				continue
			}
			state.Ports = append(state.Ports, engine.Port{HostIP: address(b.HostIP), HostPort: uint16(number), ContainerPort: port.Num()})
		}
	}
	sortPorts(state.Ports)
	return state
}

// addresses returns the addresses in the network that the container was created with, or else in the first one by name.
func addresses(networks map[string]*network.EndpointSettings, mode string) (v4, v6 string) {
	at := networks[mode]
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		at = cmp.Or(at, networks[name])
	}
	if at == nil {
		return "", ""
	}
	return address(at.IPAddress), address(at.GlobalIPv6Address)
}

func address(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func sortPorts(ports []engine.Port) {
	slices.SortFunc(ports, func(a, b engine.Port) int {
		return cmp.Or(cmp.Compare(a.ContainerPort, b.ContainerPort), cmp.Compare(a.HostIP, b.HostIP), cmp.Compare(a.HostPort, b.HostPort))
	})
}

// List implements engine.Engine.
func (d *Docker) List(ctx context.Context, labels map[string]string) ([]engine.State, error) {
	var all []engine.State
	err := d.within(ctx, shortTimeout, "cannot list containers", func(ctx context.Context) error {
		found, err := d.api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: labelFilters(labels)})
		for _, c := range found.Items {
			all = append(all, listed(c))
		}
		return err
	})
	slices.SortFunc(all, func(a, b engine.State) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

func listed(c container.Summary) engine.State {
	state := engine.State{
		ID:      c.ID,
		Image:   c.Image,
		Labels:  c.Labels,
		Running: c.State == container.StateRunning || c.State == container.StatePaused,
		Paused:  c.State == container.StatePaused,
	}
	if len(c.Names) > 0 {
		state.Name = strings.TrimPrefix(c.Names[0], "/")
	}
	if c.NetworkSettings != nil {
		state.IPv4, state.IPv6 = addresses(c.NetworkSettings.Networks, c.HostConfig.NetworkMode)
	}
	for _, p := range c.Ports {
		if p.Type == string(network.TCP) && p.PublicPort != 0 {
			state.Ports = append(state.Ports, engine.Port{HostIP: address(p.IP), HostPort: p.PublicPort, ContainerPort: p.PrivatePort})
		}
	}
	sortPorts(state.Ports)
	return state
}

// labelFilters returns filters for labels; an empty value matches any.
func labelFilters(labels map[string]string) client.Filters {
	filters := client.Filters{}
	for key, value := range labels {
		if value != "" {
			key += "=" + value
		}
		filters.Add("label", key)
	}
	return filters
}

// Remove implements engine.Engine.
func (d *Docker) Remove(ctx context.Context, name string) error {
	err := d.onContainer(ctx, longTimeout, "cannot remove", name, func(ctx context.Context) error {
		_, err := d.api.ContainerRemove(ctx, name, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
	if engine.IsNotFound(err) {
		return nil
	}
	return err
}

// Signal implements engine.Engine.
func (d *Docker) Signal(ctx context.Context, name, signal string) error {
	return d.onContainer(ctx, shortTimeout, "cannot send "+signal+" to", name, func(ctx context.Context) error {
		_, err := d.api.ContainerKill(ctx, name, client.ContainerKillOptions{Signal: signal})
		return err
	})
}

// Logs implements engine.Engine.
func (d *Docker) Logs(ctx context.Context, name string) (string, error) {
	var end tail
	err := d.onContainer(ctx, shortTimeout, "cannot read the logs of", name, func(ctx context.Context) error {
		found, err := d.api.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		if err != nil {
			return err
		}
		const lines = "500"
		logs, err := d.api.ContainerLogs(ctx, name, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: lines})
		if err != nil {
			return err
		}
		defer func() { _ = logs.Close() }()
		end = tail{limit: engine.LogsLimit}
		if found.Container.Config != nil && found.Container.Config.Tty {
			_, err = io.Copy(&end, logs)
		} else {
			_, err = stdcopy.StdCopy(&end, &end, logs)
		}
		return err
	})
	return end.String(), err
}

// tail is a writer that keeps the end of what is written to it.
type tail struct {
	limit int
	kept  []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p[max(0, len(p)-t.limit):]...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns what is kept, as valid UTF-8.
func (t *tail) String() string { return strings.ToValidUTF8(string(t.kept), "") }
