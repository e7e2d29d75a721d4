package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// loadTimeout is how long copying all images into a container may take.
const loadTimeout = 15 * time.Minute

// loading is the job that copies images into the container.
const loading = "preload"

// importScript imports an image from its input into containerd, and marks it as imported.
const importScript = `set -e
tries=0
until [ -S /run/containerd/containerd.sock ] && ctr version >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -gt 600 ]; then echo "containerd does not run" >&2; exit 1; fi
  sleep 0.1
done
ctr --namespace k8s.io images import - >&2
mkdir -p "${1%/*}"
: >"$1"
`

// preload copies images from the host into the container. Each image is marked in the container once it is there, so that it is not
// copied again after a restart of the manager.
func (c *Controller) preload(ctx context.Context, s *scope) (step.Result, error) {
	key, images, container := s.jobKey(loading), s.obj.Spec.PreLoadImages, s.Container()
	if len(images) == 0 || s.HadContainer() {
		return step.Done().KeepCondition(), nil
	}
	loaded := job.Run(c.jobs, key, func(ctx context.Context) (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, loadTimeout)
		defer cancel()
		for _, image := range images {
			if err := c.load(ctx, container, image); err != nil {
				return struct{}{}, fmt.Errorf("loading image %s into container %s: %w", image, container, err)
			}
		}
		return struct{}{}, nil
	})
	switch {
	case loaded.Running:
		return working(s, dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.LoadingImagesV1Beta1Reason,
			"images to be loaded into container "+container), nil
	case loaded.Err != nil:
		return retried(ctx, s, dockerv1.ContainerProvisionedV1Beta1Condition, dockerv1.ContainerProvisioningFailedV1Beta1Reason, loaded), nil
	}
	return step.Done().KeepCondition(), nil
}

func (c *Controller) load(ctx context.Context, container, image string) error {
	sum := sha256.Sum256([]byte(image))
	mark := "/var/lib/cluster-api/images/" + hex.EncodeToString(sum[:16])
	err := c.engine.Exec(ctx, container, engine.Command{Args: []string{"test", "-e", mark}})
	if exit := (*engine.ExitError)(nil); !errors.As(err, &exit) {
		return err
	}
	if err := c.engine.EnsureImage(ctx, image); err != nil {
		return err
	}
	from, to := io.Pipe()
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		err := c.engine.SaveImage(ctx, image, to)
		_ = to.CloseWithError(err) // It never fails.
		return err
	})
	both.Go(func() error {
		err := c.engine.Exec(ctx, container, engine.Command{Args: []string{"/bin/sh", "-c", importScript, "import", mark}, Stdin: from})
		_ = from.CloseWithError(err) // As above. It ends the other side.
		if exit := (*engine.ExitError)(nil); errors.As(err, &exit) {
			lines := strings.Split(strings.TrimSpace(exit.Output), "\n") // There is nothing secret in it.
			err = fmt.Errorf("%w: %s", err, condition.Brief(lines[len(lines)-1]))
		}
		return err
	})
	return both.Wait()
}
