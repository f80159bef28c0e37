/** The name that this command records as the application of the sessions it creates. */
export const APP = "holdfast";
