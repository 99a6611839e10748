package dstream

import "github.com/statemill/statemill/sink"

// settingFaults finds what exactly-once sinks can tell of their settings before they are
// opened, once for each unit, and what those who made outputs can (Checked).
func (ssc *StreamingContext) settingFaults() (faults []*Fault) {
	told := map[sink.Unit]bool{}
	for _, o := range ssc.outputs {
		for _, check := range o.checks {
			if check == nil {
				continue // told by the call
			}
			if err := callErr(o.label(), check); err != nil {
				faults = append(faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind, Err: err})
			}
		}
		v, ok := o.unit.(sink.Validator)
		if !ok || told[o.unit] {
			continue
		}
		told[o.unit] = true
		if err := callErr(o.label(), v.Validate); err != nil {
			faults = append(faults, &Fault{Caller: o.caller, Call: "dstream." + o.kind, Err: err})
		}
	}
	return faults
}
