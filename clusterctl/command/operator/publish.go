package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// PublishOptions are the inputs of the command.
type PublishOptions struct {
	IO     *iostreams.Streams
	Config func(context.Context) (*config.Config, error)
	// Dir is the folder whose YAML files are published, if there are no Files.
	Dir   string
	Files []string
	// URL is the artifact.
	URL string
}

// NewPublish returns the command. runF, if not nil, is run instead.
func NewPublish(f *factory.Factory, runF func(context.Context, *PublishOptions) error) *cobra.Command {
	opts := &PublishOptions{IO: f.IO, Config: f.Config}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Publish a release of a provider as an OCI artifact",
		Long: `Publish a release of a provider as an OCI artifact, for the field spec.fetchConfig.oci of providers.

The files are metadata.yaml and the components, such as infrastructure-components.yaml. Several providers of one release
can be in one artifact. The tag is the version.

Credentials are the variables OCI_USERNAME and OCI_PASSWORD, OCI_ACCESS_TOKEN, or OCI_REFRESH_TOKEN of the environment or of
the configuration; otherwise those of docker login and similar tools are used.`,
		Example: `  # Publish the YAML files of a folder
  clusterctl operator publish --artifact-url registry.example.com/capi/aws:v2.4.0 --dir out/v2.4.0

  # Publish some files, to a registry without TLS
  clusterctl operator publish -u http://localhost:5000/capi/aws:v2.4.0 -f metadata.yaml -f infrastructure-components.yaml

  # Write an OCI layout into a folder
  clusterctl operator publish -u /mnt/usb/aws:v2.4.0 --dir out/v2.4.0`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.URL == "" {
				return fmt.Errorf("--artifact-url is required, such as registry.example.com/capi/aws:v2.4.0: see `%s --help`", cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPublish(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Dir, "dir", "d", ".", "The `folder` whose YAML files are published")
	cmd.Flags().StringSliceVarP(&opts.Files, "file", "f", nil, "The `files` to publish, instead of those of a folder")
	cmd.Flags().StringVarP(&opts.URL, "artifact-url", "u", "",
		"The `artifact`: registry/repository:tag, or the absolute path of an OCI layout with a tag")
	return cmd
}

func runPublish(ctx context.Context, opts *PublishOptions) error {
	c, err := opts.Config(ctx)
	if err != nil {
		return err
	}
	files, err := readRelease(opts)
	if err != nil {
		return err
	}
	err = repository.Publish(ctx, opts.URL, files, func(name string) string {
		value, _ := c.Variable(name)
		return value
	}, nil)
	if err != nil {
		return err
	}
	opts.IO.Infof("Published %s as %s", strings.Join(slices.Sorted(maps.Keys(files)), ", "), opts.URL)
	return nil
}

// readRelease returns the files by the titles of their layers.
func readRelease(opts *PublishOptions) (map[string][]byte, error) {
	paths := opts.Files
	if len(paths) == 0 {
		var err error
		if paths, err = filepath.Glob(filepath.Join(opts.Dir, "*.yaml")); err != nil {
			return nil, fmt.Errorf("--dir %s: %w", opts.Dir, err)
		}
	}
	files, metadata := map[string][]byte{}, false
	var standard, others []string
	for _, path := range paths {
		raw, err := os.ReadFile(path) // Chosen by the user.
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		if files[name] != nil {
			return nil, fmt.Errorf("--file: two files are named %s: names must be unique", name)
		}
		files[name] = raw
		metadata = metadata || strings.HasSuffix(name, repository.MetadataFile)
		switch {
		case strings.HasSuffix(name, "components.yaml"):
			standard = append(standard, name)
		case strings.Contains(name, "-components"):
			others = append(others, name)
		}
	}
	switch {
	case !metadata:
		return nil, fmt.Errorf("there is no %s among %s: a release without it cannot be installed",
			repository.MetadataFile, strings.Join(paths, ", "))
	case len(standard) > 0:
		return files, nil
	case len(others) == 1:
		// The operator cannot know the name.
		files["components.yaml"] = files[others[0]]
		delete(files, others[0])
		return files, nil
	}
	return nil, errors.New("there is no file with components: name it {type}-components.yaml, where type is one of " + types())
}

func types() string {
	var list []string
	for _, t := range packages.Types() {
		list = append(list, packages.Word(t))
	}
	return strings.Join(list, ", ")
}
