package engine

import (
	"context"
	"io"
	"os"
	"time"
)

// Engine runs containers. Containers are referred to by name. The predicates IsNotFound, IsConflict and so on classify errors.
type Engine interface {
	// EnsureImage pulls an image unless it is present. It takes as long as the registry needs, at most half an hour.
	EnsureImage(ctx context.Context, image string) error

	// Create creates a container, writes its files, and starts it. The image must be present: IsNotFound otherwise.
	// IsConflict means that a container of this name exists, even if it is not ours. If the container cannot be started, for
	// example because a port is in use, Create removes it again.
	//
	// A process that is killed during Create can leave a container that was never started (State.Started is zero). It may
	// lack its files; remove it and create it again.
	Create(ctx context.Context, c Container) error

	// Start starts a container that does not run. If it runs, Start does nothing.
	Start(ctx context.Context, name string) error

	// Inspect returns the state of a container.
	Inspect(ctx context.Context, name string) (*State, error)

	// List returns the containers that have all these labels, running or not, sorted by name. An empty value matches any
	// value of the label. The addresses and ports of containers that run are set; Started is not.
	List(ctx context.Context, labels map[string]string) ([]State, error)

	// Remove kills and removes a container with its anonymous volumes. It does nothing if there is no such container.
	Remove(ctx context.Context, name string) error

	// Signal sends a signal, such as "SIGHUP", to the main process of a running container.
	Signal(ctx context.Context, name, signal string) error

	// Exec runs a command in a running container until it exits. If it exits with a code other than 0, the error is an
	// *ExitError. If the context ends first, Exec returns, but the command continues to run in the container: no runtime
	// can stop it. Commands that must not run twice have to make sure of that themselves.
	Exec(ctx context.Context, name string, c Command) error

	// Write writes files into a running container, in the order given, with processes in the container: "tar" for runs of
	// files that are owned by root or numeric owners, "sh" for the others. It therefore reaches mounts in the container such
	// as tmpfs, and owners are names of users and groups of the container; it fails if they do not exist. Missing directories
	// are created. It may be interrupted between two files; a file may then be incomplete.
	Write(ctx context.Context, name string, files ...File) error

	// Copy writes files into a container, running or not, in one request and without a process in it. It does not reach
	// mounts such as tmpfs. Append is not supported, and owners must be numeric or root. Files are written in order.
	Copy(ctx context.Context, name string, files ...File) error

	// Read returns the content of a regular file in a container, running or not, without a process in it. It does not reach
	// mounts such as tmpfs. The file may have at most ReadLimit bytes. IsNotFound if it does not exist.
	Read(ctx context.Context, name, path string) ([]byte, error)

	// Logs returns the end of the output of the container's main process, at most LogsLimit bytes.
	Logs(ctx context.Context, name string) (string, error)

	// SaveImage writes an image to a writer, as a tar archive that "ctr images import" reads. The image must be present.
	SaveImage(ctx context.Context, image string, to io.Writer) error

	// EnsureNetwork creates a bridge network unless a network of this name exists.
	EnsureNetwork(ctx context.Context, name string) error

	// RemoveNetwork removes a network that EnsureNetwork created if no container, running or not, is connected to it. It does
	// nothing otherwise.
	RemoveNetwork(ctx context.Context, name string) error

	// Events calls started once the stream is open, and then f for each change of containers that have these labels (see
	// List), until the context ends or the stream breaks. It always returns an error. Changes before started is called may
	// be missed. f must not block.
	Events(ctx context.Context, labels map[string]string, started func(), f func(Event)) error
}

// Limits of what is read from containers.
const (
	// LogsLimit is the maximum number of bytes that Logs returns.
	LogsLimit = 16 << 10
	// OutputLimit is the maximum number of bytes of a command's output in ExitError.
	OutputLimit = 4 << 10
	// ReadLimit is the maximum number of bytes of a file that Read returns.
	ReadLimit = 1 << 20
)

// Container describes a container to create. The zero value of every field except Name and Image is the default of the
// runtime or of the image.
type Container struct {
	// Name is the name of the container, and Hostname that of its host. Hostname defaults to the ID of the container; Linux
	// allows at most 64 characters.
	Name, Hostname string
	// Image is the reference or ID of an image that is present.
	Image string
	// Labels are the labels of the container. See package identity.
	Labels map[string]string
	// Network is the network that the container is connected to.
	Network string

	// Entrypoint replaces that of the image, and Args its command. Env has elements of the form "NAME=value".
	Entrypoint, Args, Env []string
	// TTY gives the main process a terminal, as systemd needs it to log to the console.
	TTY bool
	// Files are written before the container is started. See Engine.Copy.
	Files []File

	// Privileged gives the container all capabilities and devices of the host.
	Privileged bool
	// PrivateCgroups gives the container a cgroup namespace of its own, also with cgroup v1.
	PrivateCgroups bool
	// SecurityOptions are options such as "seccomp=unconfined".
	SecurityOptions []string
	// Sysctls are kernel parameters of the container's namespaces.
	Sysctls map[string]string
	// Devices are paths of host devices, under the same path in the container.
	Devices []string

	// Tmpfs has mount options by path of an in-memory file system.
	Tmpfs map[string]string
	// Volumes are paths that get an anonymous volume.
	Volumes []string
	// Mounts are directories and files of the host.
	Mounts []Mount

	// Ports are published on the host.
	Ports []Port
	// Restart is when the runtime starts the container again by itself.
	Restart Restart
}

// Restart is when the runtime starts a container again by itself. Containers that users stop are not started again.
type Restart string

// The restart policies. The zero value is never.
const (
	// Always is whenever the main process exits, and when the runtime starts.
	Always Restart = "always"
	// Once is once after its main process failed. That includes a stop of the runtime: it is started with the runtime.
	Once Restart = "once"
)

// Mount is a directory or file of the host in a container. Paths must not contain colons.
type Mount struct {
	// HostPath is the absolute path on the host. If it does not exist, it is created as a directory.
	HostPath string
	// ContainerPath is the absolute path in the container.
	ContainerPath string
	// ReadOnly prevents writes in the container.
	ReadOnly bool
}

// Port is a TCP port of a container that is published on the host.
type Port struct {
	// HostIP is the address to listen on, by default all.
	HostIP string
	// HostPort is the port to listen on. 0 means that the runtime selects one.
	HostPort uint16
	// ContainerPort is the port in the container.
	ContainerPort uint16
}

// State is the state of a container.
type State struct {
	// Name is the name of the container, and ID its unique ID.
	Name, ID string
	// Image is the reference that the container was created with.
	Image string
	// Labels are all labels of the container, including those of its image.
	Labels map[string]string
	// Running reports whether the main process runs, or is paused.
	Running bool
	// Paused reports whether the container is paused: its processes exist, but do not run until it is resumed.
	Paused bool
	// ExitCode is the exit code of the main process if it ran and does not run. List does not set it.
	ExitCode int
	// Started is the time of the last start, zero if the container was never started. List does not set it.
	Started time.Time
	// IPv4 and IPv6 are the addresses in the container's network, empty if it has none or does not run.
	IPv4, IPv6 string
	// Ports are the published ports, with the host ports in use.
	Ports []Port
}

// Command is a command to run in a container.
type Command struct {
	// Args are the program and its arguments. They do not pass through a shell.
	Args []string
	// Env has elements of the form "NAME=value", in addition to the container's environment.
	Env []string
	// Stdin is the input, empty if nil.
	Stdin io.Reader
	// Stdout and Stderr receive the output, if not nil. An error from them ends Exec.
	Stdout, Stderr io.Writer
}

// File is a file to write into a container.
type File struct {
	// Path is the absolute path.
	Path string
	// Content is the content.
	Content []byte
	// Mode has the permissions, with setuid, setgid and sticky bits. 0 means 0644.
	Mode os.FileMode
	// Owner is "user", "user:group" or ":group", by name or number. The default of both is root.
	Owner string
	// Append appends the content to the file if it exists.
	Append bool
}

// Action is what happened to a container.
type Action string

// The actions that Events reports.
const (
	// Started means that the main process was started.
	Started Action = "start"
	// Died means that the main process exited.
	Died Action = "die"
	// Destroyed means that the container was removed.
	Destroyed Action = "destroy"
	// Paused and Resumed mean that its processes were stopped, and continue.
	Paused  Action = "pause"
	Resumed Action = "unpause"
)

// Event is a change of a container.
type Event struct {
	// Action is what happened.
	Action Action
	// Name is the name of the container, and ID its unique ID.
	Name, ID string
	// Labels are the labels of the container.
	Labels map[string]string
}
