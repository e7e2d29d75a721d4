package wave

import (
	"fmt"
	"strings"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// maxWaits is how many Clusters a message names.
const maxWaits = 3

// phase says how far the rollout is.
func (d *decider) phase(current int) {
	changing, back := 0, 0
	for _, c := range d.Clusters {
		if c.changing() {
			changing++
		}
		if c.Entry.State == fleetv1.RolloutStateRollingBack {
			back++
		}
	}
	switch {
	case back > 0:
		d.say(fleetv1.RolloutRollingBack, clusters(back)+" are being set back"+d.naming())
	case d.Abort != "" && changing > 0:
		d.say(fleetv1.RolloutProgressing, "spec.abort is set: "+clusters(changing)+" are still in change")
	case d.Abort != "":
		d.say(fleetv1.RolloutAborted, "spec.abort has ended it")
	case d.out.Halted != "":
		d.say(fleetv1.RolloutHalted, d.out.HaltedMessage+inChange(changing))
	case current == len(d.of):
		d.say(fleetv1.RolloutCompleted, d.summary())
	case d.Paused:
		d.say(fleetv1.RolloutPaused, "spec.paused is set"+inChange(changing))
	default:
		d.progress(current, changing)
	}
}

func (d *decider) progress(current, changing int) {
	stage := &d.Strategy.Stages[current]
	switch {
	case d.ended(current):
		end := d.soakEnd(current)
		d.wake(end)
		d.say(fleetv1.RolloutSoaking, fmt.Sprintf("All Clusters of stage %s must stay healthy until %s", stage.Name,
			end.UTC().Format("2006-01-02 15:04:05 MST")))
	case !d.approved(current):
		d.say(fleetv1.RolloutWaitingForApproval, fmt.Sprintf("Stage %s waits for its approval", stage.Name)+inChange(changing))
	case !d.Open && changing == 0:
		d.out.Phase, d.out.Reason = fleetv1.RolloutProgressing, fleetv1.RolloutOutsideWindowReason
		d.out.Message = "No window is open"
		if !d.Opens.IsZero() {
			d.out.Message += ", the next one opens at " + d.Opens.UTC().Format("2006-01-02 15:04:05 MST")
		}
	default:
		d.say(fleetv1.RolloutProgressing, fmt.Sprintf("Stage %s: %s in change", stage.Name, clusters(changing))+d.naming())
	}
}

func (d *decider) say(phase fleetv1.RolloutPhase, message string) {
	d.out.Phase, d.out.Reason, d.out.Message = phase, string(phase), message
}

// naming adds Clusters that cannot be changed now.
func (d *decider) naming() string {
	if len(d.waits) == 0 {
		return ""
	}
	named := d.waits[:min(len(d.waits), maxWaits)]
	text := "; " + strings.Join(named, "; ")
	if more := len(d.waits) - len(named); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// summary says how the rollout has ended.
func (d *decider) summary() string {
	count := map[fleetv1.RolloutState]int{}
	for _, c := range d.Clusters {
		count[c.Entry.State]++
	}
	text := clusters(count[fleetv1.RolloutStateDone]) + " changed"
	if n := count[fleetv1.RolloutStateFailed]; n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	if n := count[fleetv1.RolloutStateRolledBack]; n > 0 {
		text += fmt.Sprintf(", %d set back", n)
	}
	if n := count[fleetv1.RolloutStateSkipped]; n > 0 {
		text += fmt.Sprintf(", %d skipped", n)
	}
	return text
}

func inChange(n int) string {
	if n == 0 {
		return ""
	}
	return "; " + clusters(n) + " in change"
}

func clusters(n int) string {
	if n == 1 {
		return "1 Cluster"
	}
	return fmt.Sprintf("%d Clusters", n)
}
