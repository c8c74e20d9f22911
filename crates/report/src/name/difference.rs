//! Where two runs differ, in words.

use raddle_lab::difference::Difference;
use raddle_symbols::events;
use raddle_symbols::name::Namer;
use raddle_trace::file::Trace;
use raddle_trial::outcome::Doubts;

use super::{Names, outside};

impl Names<'_> {
    /// Where two runs of one plan first differ, in words, with the traces of both and what casts
    /// doubt on them.
    #[must_use]
    pub fn difference(
        &self,
        difference: &Difference,
        traces: [&Trace; 2],
        doubts: [Doubts; 2],
    ) -> String {
        let namer = |trace: &Trace| Namer::new(trace.run(), self.cache);
        let reasons = traces.iter().zip(doubts);
        let reason = reasons
            .filter_map(|(trace, doubts)| outside::line(&namer(trace), doubts))
            .next()
            .unwrap_or_default();
        self.difference_alone(difference, traces) + &reason
    }

    fn difference_alone(&self, difference: &Difference, traces: [&Trace; 2]) -> String {
        match difference {
            Difference::Event { seq, events } => {
                let mut text = format!("two runs of the same seed differ at event {seq}\n");
                for ((word, trace), event) in ["first: ", "second:"].iter().zip(traces).zip(events)
                {
                    let what = match event {
                        None => "nothing more".to_owned(),
                        Some((event, number)) => {
                            let mut namer = Namer::new(trace.run(), self.cache);
                            let before = trace.events().map_while(Result::ok);
                            for (seq, event) in (0..=*seq).zip(before) {
                                namer.push(seq, &event);
                            }
                            let line = events::line(&namer, *seq, event);
                            format!("event {number} of its thread: {line}")
                        }
                    };
                    text += &format!("  {word} {what}\n");
                }
                text
            }
            Difference::End([first, second]) => {
                format!("two runs of the same seed ended differently: {first}, then {second}\n")
            }
            Difference::Output => {
                "two runs of the same seed did the same but printed different output\n".into()
            }
        }
    }
}
