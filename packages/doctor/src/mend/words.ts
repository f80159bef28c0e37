/** What stands in a repaired session in the place of what is lost: every agent shows it to its model. */
export const LOST_RESULT = "[The result of this call was lost. holdfast doctor put this note in its place.]";
export const LOST_RECORD = "A record was lost here. holdfast doctor linked the conversation over the gap.";
export const CUT_OFF = "[… The rest was lost; holdfast doctor kept what could be read.]";
export const LOST_INPUT = { holdfast_doctor: "The input of this call was lost." };
export const LOST_PROMPT = "[A prompt was lost here. holdfast doctor put this note in its place.]";
export const LOST_ANSWER = "[An answer was lost here. holdfast doctor put this note in its place.]";
