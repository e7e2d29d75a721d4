package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtime is the container runtime of the node.
type runtime struct {
	endpoint   string
	timeout    time.Duration
	containers cri.RuntimeServiceClient
	images     cri.ImageServiceClient
}

// crictl returns a command with the most used subcommands of crictl, for debugging nodes. crictl itself is not published as a
// module that programs can be built from.
func crictl() *cobra.Command {
	r := &runtime{}
	root := &cobra.Command{
		Use: "crictl", Short: "Show and remove containers, Pods and images of this node", SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return r.connect() },
	}
	root.PersistentFlags().StringVarP(&r.endpoint, "runtime-endpoint", "r", "unix:///run/containerd/containerd.sock", "socket of the runtime")
	root.PersistentFlags().StringP("image-endpoint", "i", "", "not used: images are the runtime's")
	root.PersistentFlags().DurationVarP(&r.timeout, "timeout", "t", 30*time.Second, "timeout of each request")
	root.AddCommand(r.version(), r.info(), r.ps(), r.pods(), r.listImages(), r.inspect(), r.logs(), r.pull(),
		r.each("rmi", "IMAGE...", "Remove images", func(ctx context.Context, id string) error {
			_, err := r.images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: id}})
			return err
		}),
		r.each("stop", "CONTAINER...", "Stop containers", func(ctx context.Context, id string) error {
			_, err := r.containers.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id})
			return err
		}),
		r.each("rm", "CONTAINER...", "Remove containers", func(ctx context.Context, id string) error {
			_, err := r.containers.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: id})
			return err
		}),
		r.each("stopp", "POD...", "Stop Pods", func(ctx context.Context, id string) error {
			_, err := r.containers.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
			return err
		}),
		r.each("rmp", "POD...", "Remove Pods", func(ctx context.Context, id string) error {
			_, err := r.containers.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
			return err
		}))
	return root
}

func (r *runtime) connect() error {
	connection, err := grpc.NewClient(r.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("cannot connect to %s: %w", r.endpoint, err)
	}
	r.containers, r.images = cri.NewRuntimeServiceClient(connection), cri.NewImageServiceClient(connection)
	return nil
}

func (r *runtime) version() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Show the version of the runtime", RunE: func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
		defer cancel()
		v, err := r.containers.Version(ctx, &cri.VersionRequest{})
		if err != nil {
			return err
		}
		fmt.Printf("Version:  %s\nRuntimeName:  %s\nRuntimeVersion:  %s\nRuntimeApiVersion:  %s\n", v.Version, v.RuntimeName, v.RuntimeVersion, v.RuntimeApiVersion)
		return nil
	}}
}

func (r *runtime) info() *cobra.Command {
	return &cobra.Command{Use: "info", Short: "Show the status of the runtime", RunE: func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
		defer cancel()
		status, err := r.containers.Status(ctx, &cri.StatusRequest{Verbose: true})
		if err != nil {
			return err
		}
		return printJSON(protoadapt.MessageV2Of(status))
	}}
}

// list returns a command that lists objects: as a table, as IDs, or as JSON.
func (r *runtime) list(use, short string, get func(ctx context.Context) (message proto.Message, ids []string, rows []string, err error)) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	quiet := command.Flags().BoolP("quiet", "q", false, "only print IDs")
	output := command.Flags().StringP("output", "o", "table", "table or json")
	command.RunE = func(c *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
		defer cancel()
		message, ids, rows, err := get(ctx)
		switch {
		case err != nil:
			return err
		case *output == "json":
			return printJSON(message)
		case *quiet:
			rows = ids
		}
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(w, row)
		}
		return w.Flush()
	}
	return command
}

func (r *runtime) ps() *cobra.Command {
	var all bool
	var name, pod string
	command := r.list("ps", "List containers", func(ctx context.Context) (proto.Message, []string, []string, error) {
		filter := &cri.ContainerFilter{PodSandboxId: pod}
		if !all {
			filter.State = &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}
		}
		found, err := r.containers.ListContainers(ctx, &cri.ListContainersRequest{Filter: filter})
		if err != nil {
			return nil, nil, nil, err
		}
		found.Containers = slices.DeleteFunc(found.Containers, func(c *cri.Container) bool { return !strings.Contains(c.Metadata.Name, name) })
		slices.SortFunc(found.Containers, func(a, b *cri.Container) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
		var ids []string
		rows := []string{"CONTAINER\tIMAGE\tCREATED\tSTATE\tNAME\tATTEMPT\tPOD ID\tPOD"}
		for _, c := range found.Containers {
			ids = append(ids, c.Id)
			rows = append(rows, fmt.Sprintf("%.13s\t%s\t%s ago\t%s\t%s\t%d\t%.13s\t%s", c.Id, c.Image.Image, age(c.CreatedAt),
				strings.TrimPrefix(c.State.String(), "CONTAINER_"), c.Metadata.Name, c.Metadata.Attempt, c.PodSandboxId, c.Labels["io.kubernetes.pod.name"]))
		}
		return protoadapt.MessageV2Of(found), ids, rows, nil
	})
	command.Flags().BoolVarP(&all, "all", "a", false, "also those that do not run")
	command.Flags().StringVar(&name, "name", "", "part of the name")
	command.Flags().StringVarP(&pod, "pod", "p", "", "ID of the Pod")
	return command
}

func (r *runtime) pods() *cobra.Command {
	var name string
	command := r.list("pods", "List Pods", func(ctx context.Context) (proto.Message, []string, []string, error) {
		found, err := r.containers.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
		if err != nil {
			return nil, nil, nil, err
		}
		found.Items = slices.DeleteFunc(found.Items, func(p *cri.PodSandbox) bool { return !strings.Contains(p.Metadata.Name, name) })
		var ids []string
		rows := []string{"POD ID\tCREATED\tSTATE\tNAME\tNAMESPACE\tATTEMPT"}
		for _, p := range found.Items {
			ids = append(ids, p.Id)
			rows = append(rows, fmt.Sprintf("%.13s\t%s ago\t%s\t%s\t%s\t%d", p.Id, age(p.CreatedAt),
				strings.TrimPrefix(p.State.String(), "SANDBOX_"), p.Metadata.Name, p.Metadata.Namespace, p.Metadata.Attempt))
		}
		return protoadapt.MessageV2Of(found), ids, rows, nil
	})
	command.Flags().StringVar(&name, "name", "", "part of the name")
	return command
}

func (r *runtime) listImages() *cobra.Command {
	command := r.list("images", "List images", func(ctx context.Context) (proto.Message, []string, []string, error) {
		found, err := r.images.ListImages(ctx, &cri.ListImagesRequest{})
		if err != nil {
			return nil, nil, nil, err
		}
		var ids []string
		rows := []string{"IMAGE\tIMAGE ID\tSIZE"}
		for _, i := range found.Images {
			ids = append(ids, i.Id)
			rows = append(rows, fmt.Sprintf("%s\t%.13s\t%dMB", strings.Join(i.RepoTags, ","), strings.TrimPrefix(i.Id, "sha256:"), i.Size/1e6))
		}
		return protoadapt.MessageV2Of(found), ids, rows, nil
	})
	command.Aliases = []string{"image", "img"}
	return command
}

func (r *runtime) inspect() *cobra.Command {
	return r.each("inspect", "CONTAINER...", "Show the status of containers", func(ctx context.Context, id string) error {
		status, err := r.containers.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id, Verbose: true})
		if err != nil {
			return err
		}
		return printJSON(protoadapt.MessageV2Of(status))
	})
}

func (r *runtime) logs() *cobra.Command {
	return r.each("logs", "CONTAINER...", "Print the logs of containers", func(ctx context.Context, id string) error {
		status, err := r.containers.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(status.Status.LogPath)
		if err != nil {
			return err
		}
		return writeLog(os.Stdout, string(raw))
	})
}

// writeLog prints a log without what the runtime adds to each line: time, stream, and whether the line is complete.
func writeLog(w io.Writer, log string) error {
	for line := range strings.Lines(log) {
		parts := strings.SplitN(line, " ", 4)
		if len(parts) < 4 {
			continue
		}
		text := parts[3]
		if parts[2] == "P" {
			text = strings.TrimSuffix(text, "\n")
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func (r *runtime) pull() *cobra.Command {
	return r.each("pull", "IMAGE...", "Pull images", func(ctx context.Context, image string) error {
		pulled, err := r.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: image}})
		if err == nil {
			fmt.Println("Image is up to date for", pulled.ImageRef)
		}
		return err
	})
}

// each returns a command that does something with every argument.
func (r *runtime) each(name, arguments, short string, do func(ctx context.Context, argument string) error) *cobra.Command {
	return &cobra.Command{Use: name + " " + arguments, Short: short, Args: cobra.MinimumNArgs(1), RunE: func(c *cobra.Command, args []string) error {
		var failed error
		for _, argument := range args {
			ctx, cancel := context.WithTimeout(c.Context(), r.timeout)
			if err := do(ctx, argument); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", argument, err))
			}
			cancel()
		}
		return failed
	}}
}

func printJSON(message proto.Message) error {
	raw, err := protojson.MarshalOptions{Multiline: true, Indent: "  "}.Marshal(message)
	if err == nil {
		_, err = fmt.Println(string(raw))
	}
	return err
}

func age(nanoseconds int64) time.Duration {
	return time.Since(time.Unix(0, nanoseconds)).Round(time.Second)
}
